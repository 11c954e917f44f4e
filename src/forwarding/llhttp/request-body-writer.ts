import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';

export interface RequestBodyEvents {
  /** The last byte was given to the socket. */
  onWritten(): void;
  /** The stream broke, or is not as long as was said. */
  onBroken(cause?: unknown): void;
}

/** Writes a body behind its head, at the pace of the socket. Returns what ends the writing. */
export function writeBody(
  stream: Readable,
  length: number | undefined,
  socket: Socket,
  events: RequestBodyEvents,
): () => void {
  let left = length ?? Number.POSITIVE_INFINITY;
  const write = (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) {
      events.onBroken(new Error('longer than announced'));
    } else if (
      chunk.length > 0 &&
      !(length === undefined ? writeChunk(socket, chunk) : socket.write(chunk))
    ) {
      stream.pause();
    }
  };
  const goOn = () => stream.resume();
  const finish = () => {
    stop();
    if (length === undefined) socket.write('0\r\n\r\n', 'latin1');
    else if (left > 0) return events.onBroken(new Error('shorter than announced'));
    events.onWritten();
  };
  const stop = () => {
    stream.off('data', write).off('end', finish).pause();
    socket.off('drain', goOn);
  };
  socket.on('drain', goOn);
  stream.on('data', write).once('end', finish);
  return stop;
}

/** RFC 9112 section 7.1. */
function writeChunk(socket: Socket, chunk: Buffer): boolean {
  socket.cork();
  socket.write(`${chunk.length.toString(16)}\r\n`, 'latin1');
  socket.write(chunk);
  const isTaken = socket.write('\r\n', 'latin1');
  socket.uncork();
  return isTaken;
}

import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { isolated } from '../lib/faults.ts';

/** Where a body goes: a connection to the upstream, with the framing that its head said. */
export interface BodySink {
  /**
   * `true`: the kernel has all of it. Otherwise `taken` is called once it does, with what broke if it never will; it may
   * be called in either case.
   */
  write(octets: Buffer, taken: (broken?: Error | null) => void): boolean;
  /** What comes after the last octet. */
  end(): void;
}

interface BodyPumpEvents {
  /** The last octet was given to the sink. */
  onWritten(): void;
  /** The stream does not have the announced length. */
  onBroken(cause: Error): void;
}

/**
 * Moves a body from the client to the upstream, one piece at a time. Until the kernel has taken a piece, nothing more
 * is read, and further octets are joined in the client's own stream. Written at once, each piece would wait as an
 * entry of the sink's queue, which costs hundreds of octets however small the piece is.
 *
 * Returns a function that ends it; the stream is left paused.
 */
export function pumpBody(
  stream: Readable,
  length: number | undefined,
  sink: BodySink,
  events: BodyPumpEvents,
): () => void {
  let left = length ?? Number.POSITIVE_INFINITY;
  let isOver = false;
  const goOn = (broken?: Error | null) => {
    if (!isOver && !broken && stream.isPaused()) stream.resume();
  };
  const broken = () => {
    stop();
    events.onBroken(new Error('cannot be sent on'));
  };
  const move = isolated((piece: Buffer) => {
    left -= piece.length;
    if (left < 0) events.onBroken(new Error('longer than announced'));
    else if (piece.length > 0 && !sink.write(piece, goOn)) stream.pause();
  }, broken);
  const finish = isolated(() => {
    stop();
    if (length !== undefined && left > 0) return events.onBroken(new Error('shorter than announced'));
    sink.end();
    events.onWritten();
  }, broken);
  const stop = () => {
    isOver = true;
    stream.off('data', move).off('end', finish).pause();
  };
  stream.on('data', move).once('end', finish).resume();
  return stop;
}

/** Writes a body of known length. */
export function plainSink(socket: Socket): BodySink {
  return {
    write(octets, taken) {
      socket.write(octets, taken);
      return socket.writableLength === 0;
    },
    end() {},
  };
}

/** Writes a chunked body (RFC 9112 section 7.1). */
export function chunkedSink(socket: Socket): BodySink {
  return {
    write(octets, taken) {
      socket.cork();
      socket.write(`${octets.length.toString(16)}\r\n`, 'latin1');
      socket.write(octets);
      socket.write('\r\n', 'latin1', taken);
      socket.uncork();
      return socket.writableLength === 0;
    },
    end: () => void socket.write('0\r\n\r\n', 'latin1'),
  };
}

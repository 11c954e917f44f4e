import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { hopByHopNames } from '../http/field-list.ts';
import { isolated } from '../lib/faults.ts';
import type { UpstreamRequest } from './port.ts';

/** Fields that frame a message or belong to one connection; `requestHead` writes its own and drops these. */
const framing = new Set([...hopByHopNames, 'content-length', 'expect']);

const framingLengths = new Set([...framing].map((name) => name.length));

/** Ignores case. Most other fields differ in length, so they are told apart before any letter is folded. */
function isFramingField(name: string): boolean {
  return framingLengths.has(name.length) && framing.has(name.toLowerCase());
}

/** RFC 9110 section 5.6.2: a method, or the name of a field. */
export const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** RFC 9110 section 5.5: the characters of a field's value, or of a reason phrase; latin-1. */
export const valueText = /^[\t\x20-\x7e\x80-\xff]*$/;
const visible = /^[\x21-\x7e\x80-\xff]+$/;

/**
 * The head of a request as it goes on the wire, latin-1, framed by its body (RFC 9112 section 6).
 *
 * @throws {TypeError} if the upstream could read a part as something else, such as a second request. Earlier validation
 * rejects such parts.
 */
export function requestHead({ method, target, fields, body, isUpgrade }: UpstreamRequest): string {
  if (!token.test(method) || !visible.test(target)) throw new TypeError('request line');
  let head = `${method} ${target} HTTP/1.1\r\n`;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] as string;
    if (isFramingField(name)) continue;
    const value = fields[i + 1] as string;
    if (!token.test(name) || !valueText.test(value)) throw new TypeError(`field ${i / 2}`);
    head += `${name}: ${value}\r\n`;
  }
  const connection = isUpgrade === true ? 'Upgrade\r\nUpgrade: websocket' : 'keep-alive';
  return `${head}${framingOf(method, body)}Connection: ${connection}\r\n\r\n`;
}

/** RFC 9110 section 8.6: a request without a body has `Content-Length: 0` if its method usually has one. */
function framingOf(method: string, body: UpstreamRequest['body']): string {
  if (body === null) {
    return method === 'POST' || method === 'PUT' || method === 'PATCH' ? 'Content-Length: 0\r\n' : '';
  }
  return body.length === undefined ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${body.length}\r\n`;
}

/** Where a body goes: a connection to the upstream, with the framing that the head announced. */
export interface BodySink {
  /**
   * `true`: the kernel has all octets. Otherwise `taken` is called once it has them, or with an error if it never will.
   * `taken` may be called after `true`, too.
   */
  write(octets: Buffer, taken: (broken?: Error | null) => void): boolean;
  /** Writes the end of the framing, after the last octet. */
  end(): void;
}

interface BodyPumpEvents {
  /** The last octet was given to the sink. */
  onWritten(): void;
  /** The stream does not have the announced length. */
  onBroken(cause: Error): void;
}

/**
 * Moves a body from the client to the upstream, one chunk at a time. Until the kernel has taken a chunk, nothing more is
 * read, and further octets are joined in the client's own stream. If written at once, each chunk would wait as an entry of
 * the sink's queue, which costs hundreds of octets, however small the chunk is.
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
  const move = isolated((chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) events.onBroken(new Error('longer than announced'));
    else if (chunk.length > 0 && !sink.write(chunk, goOn)) stream.pause();
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

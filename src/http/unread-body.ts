import type { IncomingMessage, ServerResponse } from 'node:http';
import { EndOfTurn } from '../lib/end-of-turn.ts';

/** Milliseconds and bytes that an unwanted rest of a request body is still read for. */
const lingerMs = 1_000;
const lingerBytes = 1_048_576;

/** Whether more of the request's body is to come. */
export function isBodyPending(incoming: IncomingMessage): boolean {
  // A request without a body is not `complete` either while its own `request` event runs.
  if (incoming.complete || incoming.destroyed) return false;
  const { headers } = incoming;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Announced rest of a body up to which it is read away instead of closing the connection. */
const drainableBytes = 65_536;

/**
 * Whether a connection must end behind an answer that does not wait for the rest of its request's body: it is too long to
 * be read away, of unknown length, not sent before it is asked for, or was left by somebody who read it.
 */
export function mustClose(incoming: IncomingMessage): boolean {
  if (!isBodyPending(incoming)) return false;
  const { 'content-length': length, expect } = incoming.headers;
  const isLong = length === undefined || Number(length) > drainableBytes;
  return isLong || incoming.readableFlowing !== null || expect !== undefined;
}

/** Bytes up to which copying a body costs less than handing it to the kernel as a second piece. */
const copiedBytes = 4096;

/** Milliseconds that a client has for what it was answered and the kernel could not take. */
const unreadMs = 60_000;

/** A response whose last piece waits for the end of the turn. */
interface Ending {
  readonly response: ServerResponse;
  readonly chunk: Buffer | string | undefined;
  readonly onEnded: (() => void) | undefined;
}

const endings = new EndOfTurn<Ending>(
  ({ response, chunk, onEnded }) => {
    if (response.destroyed) return;
    // Head and body of text leave in one piece, and one piece costs the kernel half of what two cost.
    if (chunk === undefined) response.end();
    else response.end(typeof chunk === 'string' ? chunk : chunk.toString('latin1'), 'latin1');
    ended(response, onEnded);
  },
  ({ response }) => response.destroy(),
);

/** A client that never reads must not stay in flight for ever; `onEnded` looks after that itself. */
function ended(response: ServerResponse, onEnded: (() => void) | undefined): void {
  if (onEnded !== undefined) onEnded();
  else if (response.writableLength > 0) {
    const timer = setTimeout(() => response.destroy(), unreadMs);
    response.once('close', () => clearTimeout(timer));
  }
}

/**
 * Ends a response whose head is written. While the request is still arriving and the connection is to close, its rest
 * is read and thrown away within bounds first: closing at once would reset the connection, and the client might never
 * read its answer (RFC 9112 section 9.6). `onEnded`: the last piece was handed over, which may be later in this turn;
 * without it, a client that does not read is cut after a minute.
 */
export function endResponse(
  incoming: IncomingMessage,
  response: ServerResponse,
  chunk?: Buffer | string,
  onEnded?: () => void,
): void {
  if (response.shouldKeepAlive || !isBodyPending(incoming)) {
    if (chunk === undefined || chunk.length <= copiedBytes) {
      endings.add({ response, chunk, onEnded });
      return;
    }
    response.end(chunk, 'latin1');
    ended(response, onEnded);
    return;
  }
  if (chunk !== undefined && chunk.length > 0) response.write(chunk, 'latin1');
  else response.flushHeaders();
  let bytes = 0;
  const end = () => {
    clearTimeout(timer);
    incoming.off('data', count).off('end', end).off('close', end).pause();
    response.end();
    ended(response, onEnded);
  };
  const count = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > lingerBytes) end();
  };
  const timer = setTimeout(end, lingerMs);
  incoming.on('data', count).once('end', end).once('close', end).resume();
}

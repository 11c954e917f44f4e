import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isolated } from '../lib/faults.ts';
import { type FieldList, fieldValue, joinFields } from './field-list.ts';
import type { Answer, Rejection, RejectionName } from './rejection.ts';
import { type RejectionBodies, reasonPhraseOf } from './rejection-bodies.ts';

/** Refusals of a request whose end is unknown or not awaited: what follows is not read as its body. */
const closing: ReadonlySet<RejectionName> = new Set([
  'transfer-encoding-unsupported',
  'http-version-unsupported',
  'request-timeout',
]);

/**
 * Writes a refusal: its error body (in the form of `errors.format`), `Retry-After`, `WWW-Authenticate` and `Allow` where they
 * belong, and `more` fields (CORS, request id). If the rest of the request's body is short, it is read and dropped, else the
 * connection closes after the answer. A response that has begun is cut instead.
 *
 * Returns the status that was sent (0: none) and the octets of its body.
 */
export function writeRejection(
  incoming: IncomingMessage,
  response: ServerResponse,
  rejection: Rejection,
  bodies: RejectionBodies,
  more: FieldList = [],
): { readonly status: number; readonly bytes: number } {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return { status: 0, bytes: 0 };
  }
  const { status, fields: rendered, body } = renderRejection(rejection, bodies);
  const fields = joinFields(rendered, more);
  const { socket } = response;
  const isEndless = closing.has(rejection.rejection) && socket !== null;
  if (isEndless || mustClose(incoming)) response.shouldKeepAlive = false;
  response.writeHead(status, reasonPhraseOf(status), fields);
  const whole = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  const chunk = incoming.method === 'HEAD' ? undefined : (whole ?? undefined);
  endResponse(incoming, response, chunk);
  if (isEndless) socket.destroySoon = () => endLingering(socket);
  return { status, bytes: chunk?.length ?? 0 };
}

export function renderRejection(rejection: Rejection, bodies: RejectionBodies): Answer {
  const { status, fields, body } = rejection.answer ?? bodies.of(rejection.rejection, rejection.hint);
  const { challenge, retryAfterSeconds } = rejection;
  const all = [...fields, ...(rejection.fields ?? [])];
  if (challenge !== undefined) all.push('WWW-Authenticate', challenge);
  if (retryAfterSeconds !== undefined) all.push('Retry-After', String(retryAfterSeconds));
  if (rejection.rejection === 'method-not-allowed') all.push('Allow', bodies.allow);
  // A cache in front must not give this refusal to another client, or to the same one with a token.
  if (fieldValue(all, 'cache-control') === undefined) all.push('Cache-Control', 'no-store');
  return { status, fields: all, body };
}

/** Whether more of the request's body is to come. */
export function isBodyPending(incoming: IncomingMessage): boolean {
  // A request without a body is not `complete` either while its own `request` event runs.
  if (incoming.complete || incoming.destroyed) return false;
  const { headers } = incoming;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Announced rest of a body, in bytes, up to which it is read and dropped instead of closing the connection. */
const drainableBytes = 65_536;

/**
 * Whether a connection must close after an answer that does not wait for the rest of the request's body: the rest is too long
 * to be read and dropped, its length is unknown, the client waits for `100 Continue`, or reading has already begun.
 */
export function mustClose(incoming: IncomingMessage): boolean {
  if (!isBodyPending(incoming)) return false;
  const { 'content-length': length, expect } = incoming.headers;
  const isLong = length === undefined || Number(length) > drainableBytes;
  return isLong || incoming.readableFlowing !== null || expect !== undefined;
}

/** What a client still sends is awaited for this many milliseconds after the last one. */
const idleMs = 2_000;

/** Bytes up to which a body is copied as text: head and text leave in one write, which costs the kernel half of what two cost. */
const copiedBytes = 4096;

/** Milliseconds that a client has to read an answer that did not fit into the kernel's buffer. */
const unreadMs = 60_000;

/**
 * Ends a response whose head is written. If the connection closes while the request is still arriving, its rest is read
 * and dropped within bounds. `onEnded`: the last chunk was handed over; without it, a client that does not read is cut
 * after a minute.
 */
export function endResponse(
  incoming: IncomingMessage,
  response: ServerResponse,
  chunk?: Buffer | string,
  onEnded?: () => void,
): void {
  const { socket } = response;
  const isPending = !response.shouldKeepAlive && socket !== null && isBodyPending(incoming);
  if (isPending) socket.destroySoon = () => endLingering(socket);
  if (response.destroyed) return;
  // Not at the end of the tick: this answer would wait for everything else that the tick has read.
  const isCopied = typeof chunk === 'object' && chunk.length <= copiedBytes;
  if (chunk === undefined) response.end();
  else response.end(isCopied ? chunk.toString('latin1') : chunk, 'latin1');
  if (onEnded !== undefined) onEnded();
  else if (response.writableLength > 0) {
    const timer = setTimeout(() => response.destroy(), unreadMs);
    response.once('close', () => clearTimeout(timer));
  }
}

/**
 * Ends a connection after what was written, and drops what its client still sends until `idleMs` pass without an octet: a
 * client that sends while its connection is reset may never read the answer (RFC 9112 section 9.6).
 */
export function endLingering(socket: Socket): void {
  const [mostBytes, untilMs] = [socket.bytesRead + 67_108_864, performance.now() + 10_000];
  const idle = setTimeout(() => socket.destroy(), idleMs);
  const drop = isolated(() =>
    socket.bytesRead > mostBytes || performance.now() > untilMs ? socket.destroy() : idle.refresh(),
  );
  // Node's parser resumes reading on this event unless the data has another listener.
  socket.resume().emit('resume');
  socket.removeAllListeners('data').removeAllListeners('pause').on('data', drop);
  const finish = isolated(() => socket.end(() => socket.destroy()));
  socket.once('end', finish).once('close', () => clearTimeout(idle));
  if (!socket.writableEnded) socket.end();
}

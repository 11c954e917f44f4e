import type { IncomingMessage, ServerResponse } from 'node:http';
import { EndOfTurn } from '../lib/end-of-turn.ts';
import { isolate } from '../lib/faults.ts';
import { type FieldList, fieldValue, joinFields } from './field-list.ts';
import type { Answer, Rejection, RejectionName } from './rejection.ts';
import { type RejectionBodies, reasonPhraseOf } from './rejection-bodies.ts';

/** Refusals after which the connection is not used again. */
const closing: ReadonlySet<RejectionName> = new Set([
  'transfer-encoding-unsupported',
  'http-version-unsupported',
  'request-timeout',
]);

/**
 * Writes a refusal: its error body (in the form of `errors.format`), `Retry-After`, `WWW-Authenticate` and `Allow` where they belong, and `more` fields (CORS, request id). What is still to come of the request's body is
 * read away if it is short, else the connection closes after the answer. A response that has begun is cut instead.
 *
 * Returns the status that was sent, 0 for none.
 */
export function writeRejection(
  incoming: IncomingMessage,
  response: ServerResponse,
  rejection: Rejection,
  bodies: RejectionBodies,
  more: FieldList = [],
): number {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return 0;
  }
  const { status, fields: rendered, body } = renderRejection(rejection, bodies, incoming.headers.accept);
  const fields = joinFields(rendered, more);
  if (closing.has(rejection.rejection) || mustClose(incoming)) response.shouldKeepAlive = false;
  response.writeHead(status, reasonPhraseOf(status), fields);
  const chunk = typeof body === 'string' ? Buffer.from(body, 'latin1') : body;
  endResponse(incoming, response, incoming.method === 'HEAD' ? undefined : (chunk ?? undefined));
  return status;
}

/** A refusal as a complete response. `accept`: the request's field, if it was read. */
export function renderRejection(rejection: Rejection, bodies: RejectionBodies, accept?: string): Answer {
  const { status, fields, body } = rejection.answer ?? bodies.of(rejection.rejection, accept, rejection.hint);
  const all = [...fields, ...fieldsOf(rejection, bodies.allow)];
  // A cache in front must not give it to another client, or to the same one with a token.
  if (fieldValue(all, 'cache-control') === undefined) all.push('Cache-Control', 'no-store');
  return { status, fields: all, body };
}

function fieldsOf(rejection: Rejection, allow: string): string[] {
  const fields: string[] = [...(rejection.fields ?? [])];
  if (rejection.challenge !== undefined) fields.push('WWW-Authenticate', rejection.challenge);
  if (rejection.retryAfterSeconds !== undefined)
    fields.push('Retry-After', String(rejection.retryAfterSeconds));
  if (rejection.rejection === 'method-not-allowed') fields.push('Allow', allow);
  return fields;
}

/**
 * Milliseconds and bytes for which the rest of an unwanted request body is read and dropped. A client that is still sending
 * when the connection is reset may never read its answer; most uploads end within these bounds. The request keeps its place
 * meanwhile, so that the share of its client bounds how many there are.
 */
const lingerMs = 10_000;
const lingerBytes = 67_108_864;

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
 * Whether a connection must close after an answer that does not wait for the rest of the request's body: the rest is
 * too long to be read and dropped, of unknown length, not sent before the client is asked for it, or its reader has
 * left it.
 */
export function mustClose(incoming: IncomingMessage): boolean {
  if (!isBodyPending(incoming)) return false;
  const { 'content-length': length, expect } = incoming.headers;
  const isLong = length === undefined || Number(length) > drainableBytes;
  return isLong || incoming.readableFlowing !== null || expect !== undefined;
}

/** Bytes up to which copying a body costs less than a second write to the socket. */
const copiedBytes = 4096;

/** Milliseconds that a client has to read an answer that did not fit into the kernel's buffer. */
const unreadMs = 60_000;

/** A response whose last chunk waits for the end of the tick. */
interface Ending {
  readonly response: ServerResponse;
  readonly chunk: Buffer | string | undefined;
  readonly onEnded: (() => void) | undefined;
}

const endings = new EndOfTurn<Ending>(
  ({ response, chunk, onEnded }) => {
    if (response.destroyed) return;
    // Head and text body leave in one write, which costs the kernel half of what two cost.
    if (chunk === undefined) response.end();
    else response.end(typeof chunk === 'string' ? chunk : chunk.toString('latin1'), 'latin1');
    ended(response, onEnded);
  },
  ({ response }) => response.destroy(),
);

/**
 * A client that never reads must not stay in progress for ever; where `onEnded` is given, its owner takes care of
 * that.
 */
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
 * read its answer (RFC 9112 section 9.6). `onEnded`: the last chunk was handed over, which may be later in this tick;
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
  drainBody(incoming, () => {
    response.end();
    ended(response, onEnded);
  });
}

/** Reads and drops the rest of a body, to its end or to the bounds; then calls `drained` once. */
function drainBody(incoming: IncomingMessage, drained: () => void): void {
  let bytes = 0;
  const end = () => {
    clearTimeout(timer);
    incoming.off('data', count).off('end', end).off('close', end).pause();
    isolate(drained, () => incoming.destroy());
  };
  const count = (piece: Buffer) => {
    bytes += piece.length;
    if (bytes > lingerBytes) end();
  };
  const timer = setTimeout(end, lingerMs);
  incoming.on('data', count).once('end', end).once('close', end).resume();
}

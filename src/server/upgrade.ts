import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import type { Answer } from '../http/rejection.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { renderRejection } from '../http/write-response.ts';
import type { WebSocketForwarder } from '../upstream/websocket.ts';
import { endWithAnswer } from './client-error.ts';
import type { ExchangeContext } from './exchange.ts';
import { beyondShare, type InFlight } from './in-flight.ts';
import { codeOf, type Noted, type Outcome, readUnread, recordOf, type UnreadRequest } from './record-of.ts';

type Eventually<T> = T | Promise<T>;

/** The rooms of the pipeline that a handshake passes through, too. */
export interface HandshakeRooms {
  canonicalise(incoming: IncomingMessage): CanonicalRequest | Rejection;
  /** An endpoint of shopward's own: it is answered as for every other GET, and nothing is upgraded. */
  askOwnEndpoints(
    request: CanonicalRequest,
    notes: HandshakeNotes,
  ): Eventually<Answer | Rejection> | undefined;
  /** The same admission as for every other request. */
  admit(
    request: CanonicalRequest,
    notes: HandshakeNotes,
  ): Eventually<
    { readonly request: CanonicalRequest; readonly identity: HandshakeIdentity | undefined } | Rejection
  >;
  /** Sockets that are open or being opened. */
  readonly inFlight: InFlight;
  readonly forwarder: WebSocketForwarder;
}

/** Whose socket it is, and until when. */
interface HandshakeIdentity {
  readonly subject: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

export type HandshakeNotes = Pick<Handshake, 'route' | 'observe'>;

/** WebSocket handshakes (RFC 6455): the line of every other request, on a bare socket. Never rejects. */
export function createUpgradeHandler(rooms: HandshakeRooms, context: ExchangeContext) {
  return async (incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    socket.on('error', () => socket.destroy());
    const handshake = new Handshake(incoming, socket, context);
    try {
      await shake(rooms, handshake, head);
    } catch (fault) {
      context.onFault(fault, handshake.request?.requestId ?? handshake.unread.requestId);
      handshake.refuse(reject('internal-error', { reason: 'fault' }));
    }
  };
}

async function shake(rooms: HandshakeRooms, handshake: Handshake, head: Buffer): Promise<void> {
  const request = rooms.canonicalise(handshake.incoming);
  if (isRejection(request)) return handshake.refuse(request);
  if (request.isWebSocketUpgrade !== true) return handshake.refuse(notAHandshake);
  handshake.request = request;
  const place = rooms.inFlight.enter();
  handshake.socket.once('close', () => place.leave());
  if (handshake.socket.destroyed) place.leave();
  if (place.isBeyond) return handshake.refuse(noPlace);
  if (!place.takeFor(request.clientAddress)) return handshake.refuse(beyondShare);
  const own = await rooms.askOwnEndpoints(request, handshake);
  if (own !== undefined) return isRejection(own) ? handshake.refuse(own) : handshake.answer(own);
  const admission = await rooms.admit(request, handshake);
  if (isRejection(admission)) return handshake.refuse(admission);
  const { identity } = admission;
  if (identity !== undefined) {
    if (!place.takeForSubject(identity.subject)) return handshake.refuse(beyondShare);
    endAt(identity.expiresAtMs, handshake.socket);
  }
  let refused = 0;
  const refuse = (rejection: Rejection) => {
    refused = handshake.write(handshake.speak(rejection));
  };
  const result = await rooms.forwarder.forward(admission.request, handshake.socket, head, refuse);
  const { rejection } = result;
  const fault = codeOf(result.cause);
  const status = rejection === undefined ? result.status : refused;
  const decision = rejection !== undefined ? 'refused' : status === 0 ? 'aborted' : 'forwarded';
  handshake.record({ decision, status, rejection, fault });
}

const notAHandshake = reject('bad-request', { reason: 'websocket' });
const noPlace = reject('overloaded', { reason: 'websockets', retryAfterSeconds: 1 });

/** What a timer of node's holds. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Ends a socket when the token that opened it has expired. It is cut, as both sides are in the middle of what they say
 * to each other: a client opens another one, with the token that it has by then.
 */
function endAt(expiresAtMs: number, socket: Duplex): void {
  let timer: NodeJS.Timeout;
  const look = () => {
    const leftMs = expiresAtMs - Date.now();
    if (leftMs <= 0) socket.destroy();
    else timer = setTimeout(look, Math.min(leftMs, longestTimerMs)).unref();
  };
  socket.once('close', () => clearTimeout(timer));
  look();
}

/** One handshake and its end, and what is noted of it. */
class Handshake implements Noted {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  route = '*';
  request: CanonicalRequest | undefined;
  observed: Rejection | undefined;
  readonly startedMs = performance.now();
  readonly #context: ExchangeContext;
  #isRecorded = false;
  #unread: UnreadRequest | undefined;

  constructor(incoming: IncomingMessage, socket: Duplex, context: ExchangeContext) {
    this.incoming = incoming;
    this.socket = socket;
    this.#context = context;
  }

  get unread(): UnreadRequest {
    this.#unread ??= readUnread(this.incoming.method, this.incoming.url);
    return this.#unread;
  }

  get peerAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  /** A refusal that observe mode only notes; the first one counts. */
  observe(rejection: Rejection): void {
    this.observed ??= rejection;
  }

  refuse(rejection: Rejection): void {
    const status = this.write(this.speak(rejection));
    this.record({ decision: status === 0 ? 'aborted' : 'refused', status, rejection });
  }

  answer(answer: Answer): void {
    const status = this.write(answer);
    this.record({ decision: status === 0 ? 'aborted' : 'answered', status });
  }

  speak(rejection: Rejection): Answer {
    return renderRejection(rejection, this.#context.rejections);
  }

  #ownFields(): FieldList {
    const { ownFields } = this.#context;
    return this.request === undefined
      ? ownFields.ofUnread(this.incoming.headers.origin, this.unread.requestId)
      : ownFields.of(this.request);
  }

  /** The first one counts. */
  record(outcome: Outcome): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    this.#context.record(recordOf(this, outcome, this.#context.pathForLog), this.request);
  }

  /** The status that was sent, 0 for none. */
  write(answer: Answer): number {
    const { socket } = this;
    if (!socket.writable) {
      socket.destroy();
      return 0;
    }
    endWithAnswer(socket, answer, this.#ownFields());
    return answer.status;
  }
}

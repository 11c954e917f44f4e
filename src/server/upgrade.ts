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
import {
  codeOf,
  type ExchangeMeta,
  type Outcome,
  readUnread,
  toExchangeRecord,
  type UnreadRequest,
} from './exchange-meta.ts';
import type { InFlight, Place } from './in-flight.ts';

export interface UpgradeOptions {
  /** Sockets that are open or being opened. */
  readonly inFlight: InFlight;
  /** The pipeline of every other request; ends each handshake that it is given. */
  handle(handshake: Handshake): void;
}

/** WebSocket handshakes (RFC 6455): the line of every other request, on a bare socket. Never throws. */
export function createUpgradeHandler({ inFlight, handle }: UpgradeOptions, context: ExchangeContext) {
  return (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy());
    const place = inFlight.enter();
    socket.once('close', () => place.leave());
    if (socket.destroyed) place.leave();
    const handshake = new Handshake(incoming, socket, head, place, context);
    if (place.isBeyond) handshake.refuse(noPlace);
    else handle(handshake);
  };
}

const noPlace = reject('overloaded', { reason: 'websockets', retryAfterSeconds: 1 });

/** A request that is no handshake of RFC 6455, where only one may stand. */
export function refuseOtherThanHandshake(
  request: CanonicalRequest | Rejection,
): CanonicalRequest | Rejection {
  return isRejection(request) || request.isWebSocketUpgrade === true ? request : notAHandshake;
}

const notAHandshake = reject('bad-request', { reason: 'websocket' });

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
export class Handshake implements ExchangeMeta {
  readonly incoming: IncomingMessage;
  readonly place: Place;
  route = '*';
  request: CanonicalRequest | undefined;
  observed: Rejection | undefined;
  readonly startedMs = performance.now();
  readonly #socket: Duplex;
  /** What the client sent behind its head. */
  readonly #sentEarly: Buffer;
  readonly #context: ExchangeContext;
  #isRecorded = false;
  #unread: UnreadRequest | undefined;

  constructor(
    incoming: IncomingMessage,
    socket: Duplex,
    sentEarly: Buffer,
    place: Place,
    context: ExchangeContext,
  ) {
    this.incoming = incoming;
    this.#socket = socket;
    this.#sentEarly = sentEarly;
    this.place = place;
    this.#context = context;
  }

  get unread(): UnreadRequest {
    this.#unread ??= readUnread(this.incoming.method, this.incoming.url);
    return this.#unread;
  }

  get peerAddress(): string {
    return this.incoming.socket.remoteAddress ?? '';
  }

  setRequest(request: CanonicalRequest): void {
    this.request = request;
  }

  /** A refusal that observe mode only notes; the first one counts. */
  observe(rejection: Rejection): void {
    this.observed ??= rejection;
  }

  refuse(rejection: Rejection): void {
    const status = this.#writeRejection(rejection);
    this.#record({ decision: status === 0 ? 'aborted' : 'refused', status, rejection });
  }

  answer(answer: Answer): void {
    const status = this.#write(answer);
    this.#record({ decision: status === 0 ? 'aborted' : 'answered', status });
  }

  /** A bug or an impossible state. */
  fail(fault: unknown): void {
    this.#context.onFault(fault, this.request?.requestId ?? this.unread.requestId);
    this.refuse(reject('internal-error', { reason: 'fault' }));
  }

  /** Joins both sides; the socket ends with the token that opened it. */
  async join(
    forwarder: WebSocketForwarder,
    request: CanonicalRequest,
    identity: { readonly expiresAtMs: number } | undefined,
  ): Promise<void> {
    if (identity !== undefined) endAt(identity.expiresAtMs, this.#socket);
    let refused = 0;
    const refuse = (rejection: Rejection) => {
      refused = this.#writeRejection(rejection);
    };
    const result = await forwarder.forward(request, this.#socket, this.#sentEarly, refuse);
    const { rejection } = result;
    const fault = codeOf(result.cause);
    const status = rejection === undefined ? result.status : refused;
    const decision = rejection !== undefined ? 'refused' : status === 0 ? 'aborted' : 'forwarded';
    this.#record({ decision, status, rejection, fault });
  }

  #writeRejection(rejection: Rejection): number {
    return this.#write(renderRejection(rejection, this.#context.rejections));
  }

  #ownFields(): FieldList {
    const { ownFields } = this.#context;
    return this.request === undefined
      ? ownFields.ofUnread(this.incoming.headers.origin, this.unread.requestId)
      : ownFields.of(this.request);
  }

  /** The first one counts. */
  #record(outcome: Outcome): void {
    if (this.#isRecorded) return;
    this.#isRecorded = true;
    this.#context.record(toExchangeRecord(this, outcome, this.#context.redactPath), this.request);
  }

  /** The status that was sent, 0 for none. */
  #write(answer: Answer): number {
    const socket = this.#socket;
    if (!socket.writable) {
      socket.destroy();
      return 0;
    }
    endWithAnswer(socket, answer, this.#ownFields());
    return answer.status;
  }
}

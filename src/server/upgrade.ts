import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type FieldList, joinFields } from '../http/field-list.ts';
import { type Answer, isRejection, type Rejection, reject } from '../http/rejection.ts';
import { renderRejection } from '../http/write-response.ts';
import { isolated } from '../lib/faults.ts';
import type { WebSocketForwarder } from '../upstream/websocket.ts';
import { endWithAnswer } from './client-error.ts';
import { type ExchangeContext, RecordedExchange } from './exchange.ts';
import { codeOf } from './exchange-meta.ts';
import type { InFlight, Place } from './in-flight.ts';

interface UpgradeOptions {
  /** WebSockets that are open or being opened. */
  readonly inFlight: InFlight;
  /** The pipeline of every other request, too; ends each handshake that it is given. */
  handle(handshake: Handshake): void;
}

/** WebSocket handshakes (RFC 6455): the same steps as for every other request, on a bare socket. Never throws. */
export function createUpgradeHandler({ inFlight, handle }: UpgradeOptions, context: ExchangeContext) {
  return (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => socket.destroy());
    const place = inFlight.enter();
    const leave = isolated(() => place.leave());
    socket.once('close', leave);
    if (socket.destroyed) place.leave();
    const handshake = new Handshake(incoming, socket, head, place, context);
    if (place.isBeyond) handshake.refuse(noPlace);
    else handle(handshake);
  };
}

const noPlace = reject('overloaded', { reason: 'websockets', retryAfterSeconds: 1 });

/** Refuses a request that asks for an upgrade and is not a handshake of RFC 6455. */
export function refuseOtherThanHandshake(
  request: CanonicalRequest | Rejection,
): CanonicalRequest | Rejection {
  return isRejection(request) || request.isWebSocketUpgrade === true ? request : notAHandshake;
}

const notAHandshake = reject('bad-request', { reason: 'websocket' });

/** The longest time of a timer of node's, in milliseconds. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Ends a socket when the token that opened it expires. The socket is cut, because both sides may be in the middle of a
 * frame: the client opens another one with its next token.
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

/** One handshake and its end, and what is known of both. */
export class Handshake extends RecordedExchange {
  readonly #socket: Duplex;
  /** What the client sent after its head. */
  readonly #sentEarly: Buffer;

  constructor(
    incoming: IncomingMessage,
    socket: Duplex,
    sentEarly: Buffer,
    place: Place,
    context: ExchangeContext,
  ) {
    super(incoming, place, context);
    this.#socket = socket;
    this.#sentEarly = sentEarly;
  }

  answer(answer: Answer): void {
    const status = this.#write(answer);
    this.record({ decision: status === 0 ? 'aborted' : 'answered', status });
  }

  /** Connects both sides; the socket ends with the token that opened it. */
  async join(
    forwarder: WebSocketForwarder,
    request: CanonicalRequest,
    identity: { readonly expiresAtMs: number } | undefined,
  ): Promise<void> {
    if (identity !== undefined) endAt(identity.expiresAtMs, this.#socket);
    let refused = 0;
    const refuse = (rejection: Rejection) => {
      refused = this.writeRejection(rejection);
    };
    const own = this.responseFields ?? [];
    const edit = (fields: FieldList) => this.withheld([...fields, ...own]);
    const result = await forwarder.forward(request, this.#socket, this.#sentEarly, refuse, edit);
    const { rejection } = result;
    const fault = codeOf(result.cause);
    const status = rejection === undefined ? result.status : refused;
    const decision = rejection !== undefined ? 'refused' : status === 0 ? 'aborted' : 'forwarded';
    this.record({ decision, status, rejection, fault });
  }

  protected writeRejection(rejection: Rejection): number {
    return this.#write(renderRejection(rejection, this.context.rejections, this.incoming.headers.accept));
  }

  /** The status that was sent, 0 for none. */
  #write(answer: Answer): number {
    const socket = this.#socket;
    if (!socket.writable) {
      socket.destroy();
      return 0;
    }
    const fields = this.withheld(joinFields(answer.fields, this.ownFields()));
    endWithAnswer(socket, { ...answer, fields });
    return answer.status;
  }
}

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { ServerResponse } from '../http/node-http.ts';
import { isRejection, type Rejection, reject, rejectionKind } from '../http/rejection.ts';
import { endLingering } from '../http/write-response.ts';
import type { Eventually } from '../lib/eventually.ts';
import { isolate, isolated, isolateLate } from '../lib/faults.ts';
import { PerTick } from '../lib/per-tick.ts';
import { closeCodes, OpenWebSocket } from '../upstream/websocket.ts';
import { Exchange, type ExchangeContext } from './exchange.ts';
import type { InFlight } from './in-flight.ts';

/** Handshakes of WebSockets (RFC 6455): exchanges like any other, but with a response on a bare socket. Never throws. */
export function createUpgradeHandler(
  inFlight: InFlight,
  handle: (handshake: Exchange) => void,
  context: ExchangeContext,
) {
  return (incoming: IncomingMessage, socket: Duplex, head: Buffer): void => {
    if (head.length > 0) socket.unshift(head);
    const slot = inFlight.enter();
    const handshake = new Exchange(incoming, responseOn(incoming, socket as Socket), slot, context);
    const ended = isolated(() => handshake.ended());
    socket.once('close', ended);
    // After a declined handshake the connection may end late.
    handshake.response.once('finish', ended);
    if (socket.destroyed) handshake.ended();
    if (slot.isBeyond) handshake.refuse(reject('overloaded', { reason: 'websockets', retryAfterSeconds: 1 }));
    else handle(handshake);
  };
}

/**
 * A response on the socket of an upgrade, which Node leaves to its user; the socket ends after it. Exported for its tests.
 */
export function responseOn(incoming: IncomingMessage, socket: Socket) {
  const response = new ServerResponse(incoming);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  const finish = isolated(() => endLingering(socket));
  response.once('finish', finish);
  return response;
}

/** Refuses a request for an upgrade that is not a handshake of RFC 6455. */
export function refuseOtherThanHandshake(
  request: CanonicalRequest | Rejection,
): CanonicalRequest | Rejection {
  return isRejection(request) || request.isWebSocketUpgrade === true ? request : notAHandshake;
}

const notAHandshake = reject('bad-request', { reason: 'websocket' });

const recheckMs = 30_000;
/** An edit of the list checks all WebSockets again: thousands, each of which takes some 50 microseconds. */
const rechecks = new PerTick(64);

interface WebSocketRules {
  /** `isProven`: the handshake had a good token. */
  admits(request: CanonicalRequest, isProven: boolean): Eventually<Rejection | 'admitted' | 'free'>;
  readonly clockToleranceMs: number;
}

/**
 * The open WebSockets. Each one ends when its handshake would now be refused: it is checked again every 30 s, when its token
 * expires, and when `recheck` is called. Two clocks decide about the expiry, since the system clock may jump.
 */
export class OpenWebSockets {
  drained = 0;
  readonly #rules: WebSocketRules;
  readonly #checks = new Map<OpenWebSocket, () => void>();
  #isClosed = false;

  constructor(rules: WebSocketRules) {
    this.#rules = rules;
  }

  join(
    client: Socket,
    upstream: Socket,
    request: CanonicalRequest,
    identity: { readonly expiresAtMs: number } | undefined,
  ): void {
    const endsAtMs = (identity?.expiresAtMs ?? Number.POSITIVE_INFINITY) + this.#rules.clockToleranceMs;
    const leftMs = endsAtMs - Date.now();
    const open = new OpenWebSocket(client, upstream);
    const admits = () => this.#rules.admits(request, identity !== undefined);
    const checkOpen = this.#checkOf(open, admits, performance.now() + leftMs);
    let timer: NodeJS.Timeout;
    const watch = (withinMs: number) => {
      timer = setTimeout(checkLater, Math.min(withinMs, recheckMs)).unref();
    };
    const check = () => {
      clearTimeout(timer);
      if (this.#checks.has(open)) watch(checkOpen());
    };
    const checkLater = isolated(() => rechecks.run(check));
    this.#checks.set(open, checkLater);
    client.once('close', () => {
      clearTimeout(timer);
      this.#checks.delete(open);
    });
    // Since the handshake was accepted, the list may have changed or a drain begun.
    if (this.#isClosed) this.close([open]);
    else check();
  }

  recheck(): void {
    for (const check of this.#checks.values()) check();
  }

  close(open: Iterable<OpenWebSocket> = this.#checks.keys()): void {
    this.#isClosed = true;
    for (const one of open) {
      this.drained += 1;
      one.end(closeCodes.goingAway);
    }
  }

  #checkOf(
    open: OpenWebSocket,
    admits: () => ReturnType<WebSocketRules['admits']>,
    untilMs: number,
  ): () => number {
    const end = () => open.end(closeCodes.policyViolation);
    const heed = (verdict: Rejection | 'admitted' | 'free') => {
      const isLate = verdict !== 'free' && performance.now() >= untilMs;
      // Missing keys, or too many verifications at once, do not make this token invalid.
      const why = isRejection(verdict) && verdict.rejection !== 'overloaded' ? verdict.rejection : undefined;
      if (isLate || (why && rejectionKind(why) !== 'outage')) end();
    };
    return () => {
      isolate(() => {
        const verdict = admits();
        if (verdict instanceof Promise) isolateLate(verdict.then(heed), end);
        else heed(verdict);
      }, end);
      return Math.max(untilMs - performance.now(), 0) || recheckMs;
    };
  }
}

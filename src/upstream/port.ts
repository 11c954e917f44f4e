import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { FieldList } from '../http/field-list.ts';
import type { RequestSender } from '../lib/fair-queue.ts';

/** Sends requests to the upstream. */
export interface UpstreamClient {
  /** Starts an exchange. Never throws; errors are passed to `handler.onFault`. */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamExchange;
  /** Exchanges that have a connection. */
  readonly inFlight: number;
  /** Exchanges that wait for a connection. */
  readonly queued: number;
  /** Closes idle connections now and busy ones after their exchange, then resolves. */
  close(): Promise<void>;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Sent as the request target, byte for byte. */
  readonly target: string;
  /** End-to-end fields and `Host`, without framing fields: the client sets those according to `body`. */
  readonly fields: FieldList;
  /** A buffer (sent with Content-Length), a stream (sent chunked, or as `length` bytes), or no body. */
  readonly body: Buffer | { readonly stream: Readable; readonly length: number | undefined } | null;
  /** The client whose share of the connections and the queue it uses. Requests without one count as one client. */
  readonly sender?: RequestSender | undefined;
  /** A WebSocket handshake; needs a client with `forUpgrades`. */
  readonly isUpgrade?: boolean | undefined;
  /** Called right before the first byte is written, on a connected socket; `false`: nothing is sent. */
  readonly maySend?: (() => boolean) | undefined;
}

/** Head of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Latin-1, as sent. */
  readonly reason: string;
  readonly fields: FieldList;
}

/**
 * Called in this order: connection, informational*, head, data*, then exactly one of end and fault; `onSent` at any time
 * after connection. Another call may follow a fault of kind `internal`, because an exception can interrupt any step.
 */
export interface UpstreamHandler {
  /** The exchange has left the queue. Called once, even if the connection breaks and another one is used. */
  onConnection?(): void;
  /** The connection was stale, so the request is sent once more on a new one. */
  onRetry?(): void;
  /** The last byte of the request was handed to the kernel. */
  onSent?(): void;
  /** 1xx other than 101 (RFC 9110 section 15.2). */
  onInformational?(status: number, fields: FieldList): void;
  onHead(status: number, reason: string, fields: FieldList): void;
  /** A 101, instead of `onHead`; the last call. The handler owns the socket; early bytes of the shop can be read from it. */
  onUpgrade?(fields: FieldList, socket: Socket): void;
  /**
   * `false` pauses the upstream until `resume()`. Call `release` once `chunk` will not be read again: its memory is
   * then reused. A handler that keeps `chunk` must not call it.
   */
  onData(chunk: Buffer, release?: () => void): boolean;
  /** The body is complete as framed. */
  onEnd(): void;
  onFault(fault: UpstreamFault): void;
}

export interface UpstreamExchange {
  resume(): void;
  /** Destroys the connection. Unless the exchange is over, the handler gets a fault `aborted` with this cause at once. */
  abort(cause?: unknown): void;
}

export interface ClientOptions {
  readonly upstream: {
    readonly scheme: 'http' | 'https';
    /** An IPv6 address without its brackets. */
    readonly hostname: string;
    readonly port: number;
  };
  /** Milliseconds for opening a connection: TCP and, for https, the whole TLS handshake. */
  readonly connectTimeoutMs: number;
  /** Maximum number of connections, including those that are being opened or closed. */
  readonly connections: number;
  /** Exchanges that may wait, not counting those for which a connection is being opened; one more is `overloaded`. */
  readonly queueLimit: number;
  /**
   * Milliseconds for which an exchange may wait for a connection. Then it is `connect-timeout`, or `overloaded` if all are
   * busy or its sender has used up its share.
   */
  readonly queueTimeoutMs: number;
  /** Percent of `connections` and `queueLimit` that one address may use, and one subject. Default 100: no limit. */
  readonly sharePercent?: number | undefined;
  /** Further options of `tls.connect`, read for each connection; certificates are always verified. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'secureContext'> | undefined;
  /** Each connection is for one request; a 101 hands its socket over. */
  readonly forUpgrades?: boolean | undefined;
  /** Milliseconds for which an idle connection may be used, unless the upstream says otherwise. Default 4000. */
  readonly idleTimeoutMs?: number | undefined;
  /** Milliseconds after which a connection takes no new exchange. Default: unlimited. */
  readonly connectionLifetimeMs?: number | undefined;
}

export interface UpstreamFault {
  /**
   * `unreachable`: no connection; `connect-timeout`; `overloaded`: the queue is full, or the wait was too long; `not-sent`:
   * `maySend` returned `false`; `reset`: the connection ended or broke before the response was complete; `malformed`: bytes that
   * are not HTTP, a status outside 100-599, or an unrequested 101; `request-body`: the client's own body failed; `aborted`:
   * by `abort()`; `internal`: an exception in shopward.
   */
  readonly kind:
    | 'unreachable'
    | 'connect-timeout'
    | 'overloaded'
    | 'not-sent'
    | 'reset'
    | 'malformed'
    | 'request-body'
    | 'aborted'
    | 'internal';
  /** Whether a byte of the request may have been sent; if not, the upstream cannot have acted on it. */
  readonly sent: boolean;
  /** Whether a byte of an answer was received. */
  readonly answerBegun: boolean;
  readonly cause?: unknown;
}

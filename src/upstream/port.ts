import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { FieldList } from '../http/field-list.ts';
import type { RequestSender } from '../lib/fair-queue.ts';

/** Sends requests to the upstream. */
export interface UpstreamClient {
  /** Starts an exchange. Never throws; every error is reported to `handler.onFault`. */
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
  /** End-to-end fields with `Host`, without framing fields: the client frames from `body`. */
  readonly fields: FieldList;
  /** Whole bytes (sent with Content-Length), a stream (chunked, or `length` bytes), or no body. */
  readonly body: Buffer | { readonly stream: Readable; readonly length: number | undefined } | null;
  /** Whose share of the connections and of the queue it uses. Default: one client for all such requests. */
  readonly sender?: RequestSender | undefined;
  /** A WebSocket handshake; needs a client with `forUpgrades`. */
  readonly isUpgrade?: boolean | undefined;
  /** Called in the tick in which the first byte is written, on a connected socket; `false`: nothing is sent. */
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
 * Called in this order: connection, sent?, informational*, head, data*, then exactly one of end and fault. A fault of
 * kind `internal` may be followed by another call, because an exception may have interrupted anything.
 */
export interface UpstreamHandler {
  /** The exchange has left the queue; called once, also if the connection breaks and another is used. */
  onConnection?(): void;
  /** The connection was stale, and the request is sent once more on a new one. */
  onRetry?(): void;
  /** The last byte of the request was handed to the kernel. */
  onSent?(): void;
  /** 1xx other than 101 (RFC 9110 section 15.2). */
  onInformational?(status: number, fields: FieldList): void;
  onHead(status: number, reason: string, fields: FieldList): void;
  /** Instead of `onHead`, and the last call: a 101. The handler owns the socket; bytes that the shop has sent already can be read from it. */
  onUpgrade?(fields: FieldList, socket: Socket): void;
  /**
   * `false` pauses the upstream until `resume()`. Call `release` once `chunk` was written and will not be read again:
   * its memory is then reused. A handler that keeps `chunk` never calls it.
   */
  onData(chunk: Buffer, release?: () => void): boolean;
  /** The body is complete as framed. */
  onEnd(): void;
  onFault(fault: UpstreamFault): void;
}

export interface UpstreamExchange {
  resume(): void;
  /** Destroys the connection. The handler gets a fault `aborted` with this cause at once, unless the exchange is over. */
  abort(cause?: unknown): void;
}

export interface ClientOptions {
  readonly upstream: {
    readonly scheme: 'http' | 'https';
    /** An IPv6 address without its brackets. */
    readonly hostname: string;
    readonly port: number;
  };
  /** Milliseconds for a connection to be usable: TCP and, for https, the whole TLS handshake. */
  readonly connectTimeoutMs: number;
  /** Maximum number of connections, including those that are being opened or closed. */
  readonly connections: number;
  /** Exchanges that may wait besides those for which a connection is being opened; one more is `overloaded`. */
  readonly queueLimit: number;
  /**
   * Milliseconds for which an exchange may wait for a connection: then `connect-timeout`, or `overloaded` if all are
   * busy or its sender has its share.
   */
  readonly queueTimeoutMs: number;
  /** Percent of `connections` and of `queueLimit` that one address, and one subject, may use. Default 100: no limit. */
  readonly sharePercent?: number | undefined;
  /** Further options of `tls.connect`, read for each connection; certificates are always verified. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'secureContext'> | undefined;
  /** Each connection has one request, whose 101 may take its socket over. */
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
   * are not HTTP, a status outside 100-599, or an unasked 101; `request-body`: the client's own body failed; `aborted`:
   * by `abort()`; `internal`: an exception here.
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
  /** Whether a byte of the request may have left; if not, the upstream cannot have acted on it. */
  readonly sent: boolean;
  /** Whether a byte of an answer was received. */
  readonly answerBegun: boolean;
  readonly cause?: unknown;
}

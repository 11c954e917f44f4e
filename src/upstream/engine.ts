import type { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { FieldList } from '../http/field-list.ts';

/**
 * The port of an engine, which does one upstream request. All decisions (queue, deadlines, the retry, writing the
 * response) are shared; an engine only moves bytes and reports what it saw.
 */
export interface UpstreamEngine {
  /** Starts an exchange. Never throws; every error is reported to `handler.onFault`. */
  dispatch(request: UpstreamRequest, handler: UpstreamHandler): UpstreamExchange;
  /** Exchanges that have a connection. */
  readonly inFlight: number;
  /** Exchanges that wait for one. */
  readonly queued: number;
  /** Ends idle connections, and others once their exchange is over. */
  close(): Promise<void>;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Sent as the request target, byte for byte. */
  readonly target: string;
  /** End-to-end fields with `Host`, without framing fields: the engine frames from `body`. */
  readonly fields: FieldList;
  /** Whole bytes (sent with Content-Length), a stream (chunked, or `length` bytes), or no body. */
  readonly body: Buffer | { readonly stream: Readable; readonly length: number | undefined } | null;
  /** Called for each connection that is assigned, before `maySend`; `false`, or a rejected promise: nothing is sent. */
  readonly beforeSend?: (() => Promise<boolean>) | undefined;
  /** Called when the socket is connected, in the turn in which the first byte is written; `false`: nothing is sent. */
  readonly maySend?: (() => boolean) | undefined;
}

/** Of a final response. */
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
  /** The exchange has left the queue; called once, also if the connection breaks and another is taken. */
  onConnection?(): void;
  /** The connection was stale, and the request is sent once more on a new one. */
  onRetry?(): void;
  /** The last byte of the request was handed to the kernel. */
  onSent?(): void;
  /** 1xx other than 101 (RFC 9110 section 15.2). */
  onInformational?(status: number, fields: FieldList): void;
  onHead(status: number, reason: string, fields: FieldList): void;
  /**
   * `false` pauses the upstream until `resume()`. `release` may be called once `chunk` was written and nobody will
   * read it again: its memory is then used for other octets. A handler that keeps `chunk` never calls it.
   */
  onData(chunk: Buffer, release?: () => void): boolean;
  /** The body is complete as framed. */
  onEnd(): void;
  onFault(fault: UpstreamFault): void;
}

export interface UpstreamExchange {
  resume(): void;
  /**
   * Destroys the connection. The handler gets a fault `aborted` with this cause at once, unless the exchange is over.
   */
  abort(cause?: unknown): void;
}

/** What every engine is built from. */
export interface EngineOptions {
  readonly upstream: UpstreamOrigin;
  /** Milliseconds for a connection to be usable: TCP and, for https, the whole TLS handshake. */
  readonly connectTimeoutMs: number;
  /** Most connections at a time. */
  readonly connections: number;
  /** Exchanges that may wait besides those for which a connection is being opened; one more is `overloaded`. */
  readonly queueLimit: number;
  /**
   * Milliseconds for which an exchange may wait for a connection: then `connect-timeout`, or `overloaded` if all are
   * busy.
   */
  readonly queueTimeoutMs: number;
  /** Further options of `tls.connect`, read for each connection; certificates are always verified. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'secureContext'> | undefined;
  /** Milliseconds for which an idle connection may be used, unless the upstream says otherwise. Default 4000. */
  readonly idleTimeoutMs?: number | undefined;
  /** Milliseconds after which a connection takes no new exchange. Default: no end. */
  readonly connectionLifetimeMs?: number | undefined;
}

/** Bytes of all fields of one response; more is a malformed response. */
export const responseHeadBytes = 65_536;

interface UpstreamOrigin {
  readonly scheme: 'http' | 'https';
  /** An IPv6 address without its brackets. */
  readonly hostname: string;
  readonly port: number;
}

export interface UpstreamFault {
  /**
   * `unreachable`: no connection; `connect-timeout`; `overloaded`: too many wait, or one for too long; `not-sent`:
   * `maySend` said no; `reset`: the connection ended or broke before the response was complete; `malformed`: bytes that
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
  /**
   * Whether the connection had served an exchange before: then a reset before any byte of the answer may mean that it
   * was stale.
   */
  readonly reusedConnection: boolean;
  /** Whether a byte of an answer was received: then nothing is sent again. */
  readonly answerBegun: boolean;
  readonly cause?: unknown;
}

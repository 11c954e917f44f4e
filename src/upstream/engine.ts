import type { Readable } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import type { FieldList } from '../http/field-list.ts';

/**
 * The port behind which an engine does one upstream request. Everything that decides (queue, deadlines, the retry, the
 * response writer) is ours and shared; an engine only moves bytes and reports what it saw.
 */
export interface UpstreamEngine {
  /** Starts an exchange. Never throws; whatever goes wrong reaches `handler.onFault`. */
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
  /** Asked whenever a connection was given, before `maySend`; `false`, or a rejection: nothing is sent. */
  readonly beforeSend?: (() => Promise<boolean>) | undefined;
  /** Asked at a connected socket, in the tick in which the first byte is written; `false`: nothing is sent. */
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
 * Called in this order: connection, sent?, informational*, head, data*, then exactly one of end and fault; after a fault
 * of kind `internal` perhaps once more, since somebody here threw and may have been in the middle of anything.
 */
export interface UpstreamHandler {
  /** The exchange has left the queue; called once, also if the connection breaks and another is taken. */
  onConnection?(): void;
  /** The connection had gone stale, and the request is on its way to be sent once more, on a new one. */
  onRetry?(): void;
  /** The last byte of the request was handed to the kernel. */
  onSent?(): void;
  /** 1xx other than 101 (RFC 9110 section 15.2). */
  onInformational?(status: number, fields: FieldList): void;
  onHead(status: number, reason: string, fields: FieldList): void;
  /**
   * `false` pauses the upstream until `resume()`. Whoever has written `chunk` out, and knows that nobody will read it
   * again, may call `release`: other octets are then read into its memory. Whoever keeps it never does.
   */
  onData(chunk: Buffer, release?: () => void): boolean;
  /** The body is complete as framed. */
  onEnd(): void;
  onFault(fault: UpstreamFault): void;
}

export interface UpstreamExchange {
  resume(): void;
  /** Destroys the connection; the handler hears at once of a fault `aborted` with this cause, unless it is over already. */
  abort(cause?: unknown): void;
}

/** What every engine is built from. */
export interface EngineOptions {
  readonly upstream: UpstreamOrigin;
  /** Milliseconds for a connection to be usable: TCP and, for https, the whole TLS handshake. */
  readonly connectTimeoutMs: number;
  /** Most connections at a time. */
  readonly connections: number;
  /** Exchanges that may wait beyond those for whom a connection is being opened; one more is `overloaded`. */
  readonly queueLimit: number;
  /** Milliseconds that one may wait for a connection: then `connect-timeout`, or `overloaded` where all are busy. */
  readonly queueTimeoutMs: number;
  /** More for `tls.connect`, looked at for each connection anew; certificates are always verified. */
  readonly tls?: Pick<ConnectionOptions, 'ca' | 'cert' | 'key' | 'servername' | 'secureContext'> | undefined;
  /** Milliseconds for which an idle connection is used again when the upstream does not say. Default 4000. */
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
  /** Whether a byte of the request may have left: if not, the upstream cannot have acted on it. */
  readonly sent: boolean;
  /** Whether the connection had served an exchange before (then a reset before any byte came back may be staleness). */
  readonly reusedConnection: boolean;
  /** Whether a byte of an answer came back: if so, nothing is ever tried again. */
  readonly answerBegun: boolean;
  readonly cause?: unknown;
}

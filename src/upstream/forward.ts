import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import type { RequestSender } from '../lib/fair-queue.ts';
import type { ForwardOutcome, UpstreamHooks } from './hooks.ts';
import type { UpstreamFault } from './port.ts';

export interface ForwardInput {
  readonly request: CanonicalRequest;
  /** The body and the client's connection are taken from it; nothing else of it is read. */
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** For a WebSocket handshake: receives both sockets after a 101. */
  readonly upgrade?: { join(client: Socket, upstream: Socket): void } | undefined;
  /** The body, if it was read already. */
  readonly body?: Buffer | undefined;
  readonly hooks?: UpstreamHooks | undefined;
  /** The client whose share of the connections it uses. */
  readonly sender?: RequestSender | undefined;
  /** Limits for this request, in place of the general ones. */
  readonly limits?: { readonly requestBodyBytes: number; readonly responseTimeoutMs: number } | undefined;
}

/** The caller of `forward`: the exchange with the client. */
export interface ForwardCaller {
  /** Last change to the fields of a forwarded response (CORS, `X-Request-Id`); they are end-to-end fields already. */
  editResponse?(fields: FieldList, status: number): FieldList;
  /** Called exactly once, perhaps before `forward` returns; must not throw. */
  conclude(result: ForwardResult): void;
}

export interface ForwardResult {
  /**
   * `sent`: the response was handed over whole; `rejected`: nothing was written, the caller must write `rejection`; `cut`:
   * the client saw its response break off; `client-gone`: it had left before the end.
   */
  readonly end: 'sent' | 'rejected' | 'cut' | 'client-gone';
  readonly rejection: Rejection | undefined;
  /** Status sent to the client; 0 when none was. */
  readonly status: number;
  /** Status of the upstream's response; 0 when there was none. */
  readonly upstreamStatus: number;
  readonly fault: ForwardFault | undefined;
  /** What broke, for the log; its text may contain anything, its `code` is a stable word. */
  readonly cause: unknown;
  /** Milliseconds until the exchange had a connection, and from then until the upstream had finished. */
  readonly queuedMs: number;
  readonly upstreamMs: number;
  /** Bytes of response body handed to the client. */
  readonly bytes: number;
  readonly retried: boolean;
}

/** Why an exchange failed: the fault of the upstream's client, or the reason for which shopward ended it. */
export type ForwardFault = UpstreamFault['kind'] | 'timeout' | 'late';

/** The refusal for a fault, if no byte of an answer was sent to the client. */
export function rejectionOfFault(fault: ForwardFault, answerBegun: boolean, cause?: unknown): Rejection {
  switch (fault) {
    case 'overloaded':
      return reject('overloaded', { reason: fault, retryAfterSeconds: 1 });
    case 'not-sent':
      // With a cause, the request could not be written; without one, the feature's deadline for sending was over.
      return cause === undefined
        ? reject('overloaded', { reason: fault, retryAfterSeconds: 1 })
        : reject('internal-error', { reason: fault });
    case 'connect-timeout':
    case 'timeout':
    case 'late':
      return reject('upstream-timeout', { reason: fault });
    case 'malformed':
      return reject('upstream-invalid', { reason: fault });
    case 'reset':
      return reject(answerBegun ? 'upstream-invalid' : 'upstream-unreachable', { reason: fault });
    case 'request-body':
      return reject('bad-request', { reason: 'body-cut' });
    case 'internal':
      return reject('internal-error', { reason: 'fault' });
    case 'unreachable':
    case 'aborted':
      return reject('upstream-unreachable', { reason: fault });
  }
}

/** The outcome that `onOutcome` gets for a fault: it depends on whether a byte of the request left. */
export function outcomeOfFault(fault: ForwardFault, wasSent: boolean): ForwardOutcome {
  if (wasSent && fault !== 'overloaded') return { kind: 'unknown', fault };
  return { kind: 'unsent', fault: fault === 'timeout' || fault === 'late' ? 'aborted' : fault };
}

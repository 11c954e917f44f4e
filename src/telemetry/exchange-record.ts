import type { Method } from '../http/canonical-request.ts';
import type { RejectionName } from '../http/rejection.ts';

/**
 * What is kept of one exchange, for access log, metrics and console. It has no query, no field value and no token by
 * construction: what is not in it cannot leak from it.
 */
export interface ExchangeRecord {
  readonly requestId: string;
  readonly method: Method | 'other';
  /** Template of the deciding row or own endpoint; `*` for an open route. Never the raw path. */
  readonly route: string;
  /** Canonical path as it may be logged (token ids and over-long segments are cut out). */
  readonly path: string;
  /** `forwarded`, `answered` by shopward itself, `refused`, or `aborted` by the client before an answer. */
  readonly decision: 'forwarded' | 'answered' | 'refused' | 'aborted';
  readonly status: number;
  readonly rejection?: RejectionName | undefined;
  /** Stable word for why, such as `expired` or `lease-busy`. */
  readonly reason?: string | undefined;
  /** What would have been refused, were the row or the proxy not in observe mode. */
  readonly observed?: RejectionName | undefined;
  /** Milliseconds from the request head to the end of the response. */
  readonly durationMs: number;
  /** Milliseconds that the upstream took of it, when it was asked. */
  readonly upstreamMs?: number | undefined;
  readonly clientAddress: string;
  /** Cause of a fault for the log (an error's code word, not its message). */
  readonly fault?: string | undefined;
}

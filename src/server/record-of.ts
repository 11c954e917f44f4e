import type { Rejection } from '../rejections/rejection.ts';
import type { CanonicalRequest } from '../request/canonical-request.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { PathForLog } from '../telemetry/path-for-log.ts';

/** What is noted of one request on its way. */
export interface Noted {
  /** Undefined: it was not understood. */
  readonly request: CanonicalRequest | undefined;
  /** Template of the own endpoint or row that decided; `*` until one did. */
  readonly route: string;
  /** What observe mode only noted. */
  readonly observed: Rejection | undefined;
  /** `performance.now()` at its head. */
  readonly startedMs: number;
  /** Of the connection, as it is. */
  readonly peerAddress: string;
}

/** How it ended. */
export interface Outcome {
  readonly decision: ExchangeRecord['decision'];
  /** 0: none was sent. */
  readonly status: number;
  readonly rejection?: Rejection | undefined;
  readonly upstreamMs?: number | undefined;
  readonly fault?: string | undefined;
}

/** The one record of a request, whatever way it went. */
export function recordOf(noted: Noted, outcome: Outcome, pathForLog: PathForLog): ExchangeRecord {
  const { request, observed } = noted;
  const { rejection } = outcome;
  return {
    requestId: request?.requestId ?? '',
    method: request?.method ?? 'other',
    route: noted.route,
    path: request === undefined ? '' : pathForLog(request.segments),
    decision: outcome.decision,
    status: outcome.status,
    rejection: rejection?.rejection,
    reason: (rejection ?? observed)?.reason,
    observed: observed?.rejection,
    durationMs: performance.now() - noted.startedMs,
    upstreamMs: outcome.upstreamMs,
    clientAddress: request?.clientAddress ?? noted.peerAddress,
    fault: outcome.fault,
  };
}

/** The code word of a fault, such as `ECONNRESET`; never its message. */
export function codeOf(fault: unknown): string | undefined {
  const code = (fault as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

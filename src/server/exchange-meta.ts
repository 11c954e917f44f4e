import { type CanonicalRequest, methods } from '../http/canonical-request.ts';
import { generateRequestId } from '../http/peer.ts';
import type { Rejection } from '../http/rejection.ts';
import type { ExchangeRecord, RedactPath } from '../telemetry/exchange-record.ts';

/** A request that was refused before it was understood, as far as it may be logged. */
export interface MalformedRequest {
  /** Ours: what a client or a proxy sent was not read. */
  readonly requestId: string;
  readonly method: ExchangeRecord['method'];
  /** Plain ones, up to the first that is not. */
  readonly segments: readonly string[];
}

/** `target`: undefined if not even a request line was read. */
export function readMalformedRequest(method?: string, target?: string): MalformedRequest {
  return {
    requestId: generateRequestId(),
    method: methods.find((one) => one === method) ?? 'other',
    segments: target?.startsWith('/') ? plainSegments(target) : [],
  };
}

const maxSegments = 16;
const plain = /^[A-Za-z0-9._~-]*$/;

/** Whatever follows an escape or an odd octet is cut: it may be a token whose name is escaped, too. */
function plainSegments(target: string): string[] {
  const [path = ''] = target.slice(1, 4096).split('?');
  const segments = path.split('/');
  const odd = segments.findIndex((segment) => !plain.test(segment));
  const end = Math.min(odd < 0 ? segments.length : odd, maxSegments);
  return end === segments.length ? segments : [...segments.slice(0, end), '…'];
}

/** What is known of a request while it is handled. */
export interface ExchangeMeta {
  /** Undefined: it was malformed. */
  readonly request: CanonicalRequest | undefined;
  /** What can be said of a malformed request. */
  readonly malformed: MalformedRequest;
  /** Template of the own endpoint or row that decided; `*` until one did. */
  readonly route: string;
  /** What observe mode only recorded. */
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

/** The record of a request, whatever became of it. */
export function toExchangeRecord(
  meta: ExchangeMeta,
  outcome: Outcome,
  redactPath: RedactPath,
): ExchangeRecord {
  const { request, observed } = meta;
  const { rejection } = outcome;
  return {
    requestId: request?.requestId ?? meta.malformed.requestId,
    method: request?.method ?? meta.malformed.method,
    route: meta.route,
    path: redactPath(request?.segments ?? meta.malformed.segments),
    decision: outcome.decision,
    status: outcome.status,
    rejection: rejection?.rejection,
    reason: (rejection ?? observed)?.reason,
    observed: observed?.rejection,
    durationMs: performance.now() - meta.startedMs,
    upstreamMs: outcome.upstreamMs,
    clientAddress: request?.clientAddress ?? meta.peerAddress,
    fault: outcome.fault,
  };
}

/** The code word of a fault, such as `ECONNRESET`; never its message. */
export function codeOf(fault: unknown): string | undefined {
  const code = (fault as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

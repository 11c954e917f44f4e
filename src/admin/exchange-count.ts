import { type RejectionName, rejectionKind } from '../http/rejection.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

export interface ExchangeCount {
  requests: number;
  /** By name of the rejection: refusals that were enforced, those that observe mode only recorded, and outages. */
  readonly refusals: Map<RejectionName, number>;
  readonly observed: Map<RejectionName, number>;
  readonly outages: Map<RejectionName, number>;
  /** Milliseconds since the epoch; 0: never. */
  lastSeenMs: number;
}

export function sumCounts(counts: readonly ExchangeCount[]): ExchangeCount {
  const whole = startCount();
  for (const { requests, refusals, observed, outages, lastSeenMs } of counts) {
    whole.requests += requests;
    whole.lastSeenMs = Math.max(whole.lastSeenMs, lastSeenMs);
    for (const [name, times] of refusals) increase(whole.refusals, name, times);
    for (const [name, times] of observed) increase(whole.observed, name, times);
    for (const [name, times] of outages) increase(whole.outages, name, times);
  }
  return whole;
}

export function startCount(): ExchangeCount {
  return { requests: 0, refusals: new Map(), observed: new Map(), outages: new Map(), lastSeenMs: 0 };
}

export function addExchange(
  count: ExchangeCount,
  { rejection, observed }: ExchangeRecord,
  nowMs: number,
): void {
  count.requests++;
  count.lastSeenMs = nowMs;
  if (rejection !== undefined) {
    const kind = rejectionKind(rejection);
    if (kind === 'refusal') increase(count.refusals, rejection, 1);
    else if (kind === 'outage') increase(count.outages, rejection, 1);
  } else if (observed !== undefined) increase(count.observed, observed, 1);
}

function increase(counts: Map<RejectionName, number>, name: RejectionName, times: number): void {
  counts.set(name, (counts.get(name) ?? 0) + times);
}

/** As JSON; undefined gives zeros. */
export function describeCount(count: Readonly<ExchangeCount> | undefined) {
  return {
    requests: count?.requests ?? 0,
    refusals: Object.fromEntries(count?.refusals ?? []),
    observed: Object.fromEntries(count?.observed ?? []),
    outages: Object.fromEntries(count?.outages ?? []),
    lastSeenMs: count?.lastSeenMs || null,
  };
}

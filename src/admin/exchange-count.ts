import type { RejectionName } from '../http/rejection.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

export interface ExchangeCount {
  requests: number;
  /** Refused in earnest, and refusals that observe mode only noted, by their names. */
  readonly refusals: Map<RejectionName, number>;
  readonly observed: Map<RejectionName, number>;
  /** Milliseconds since the epoch; 0: never. */
  lastSeenMs: number;
}

export function sumCounts(counts: readonly ExchangeCount[]): ExchangeCount {
  const whole = startCount();
  for (const { requests, refusals, observed, lastSeenMs } of counts) {
    whole.requests += requests;
    whole.lastSeenMs = Math.max(whole.lastSeenMs, lastSeenMs);
    for (const [name, times] of refusals) increase(whole.refusals, name, times);
    for (const [name, times] of observed) increase(whole.observed, name, times);
  }
  return whole;
}

export function startCount(): ExchangeCount {
  return { requests: 0, refusals: new Map(), observed: new Map(), lastSeenMs: 0 };
}

export function addExchange(
  count: ExchangeCount,
  { rejection, observed }: ExchangeRecord,
  nowMs: number,
): void {
  count.requests++;
  count.lastSeenMs = nowMs;
  if (rejection !== undefined) increase(count.refusals, rejection, 1);
  else if (observed !== undefined) increase(count.observed, observed, 1);
}

function increase(counts: Map<RejectionName, number>, name: RejectionName, times: number): void {
  counts.set(name, (counts.get(name) ?? 0) + times);
}

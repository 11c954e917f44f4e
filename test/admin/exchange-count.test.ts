import { describe, expect, it } from 'vitest';
import { addExchange, describeCount, startCount, sumCounts } from '../../src/admin/exchange-count.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';

function countOf(...exchanges: readonly (readonly [Partial<ExchangeRecord>, number])[]) {
  const count = startCount();
  for (const [record, atMs] of exchanges) addExchange(count, record as ExchangeRecord, atMs);
  return count;
}

describe('counts of exchanges', () => {
  const invalid = { rejection: 'access-token-invalid' } as const;

  it('tell refusals, what was only observed, and outages apart', () => {
    const count = countOf(
      [{}, 1],
      [invalid, 2],
      [{ ...invalid, observed: 'if-match-missing' }, 3],
      [{ observed: 'if-match-missing' }, 4],
      [{ rejection: 'keys-unavailable' }, 5],
    );
    expect(describeCount(count)).toEqual({
      requests: 5,
      refusals: { 'access-token-invalid': 2 },
      observed: { 'if-match-missing': 1 },
      outages: { 'keys-unavailable': 1 },
      lastSeenMs: 5,
    });
  });

  it('are added up, and last seen when the latest was', () => {
    const [first, second] = [
      countOf([invalid, 7], [{ observed: 'if-match-missing' }, 8]),
      countOf([invalid, 3]),
    ];
    const outage = countOf([{ rejection: 'keys-unavailable' }, 1], [invalid, 1]);
    expect(describeCount(sumCounts([first, second, outage]))).toEqual({
      requests: 5,
      refusals: { 'access-token-invalid': 3 },
      observed: { 'if-match-missing': 1 },
      outages: { 'keys-unavailable': 1 },
      lastSeenMs: 8,
    });
    expect(first.requests).toBe(2);
  });

  it('of nothing are nothing, never seen', () => {
    const nothing = { requests: 0, refusals: {}, observed: {}, outages: {}, lastSeenMs: null };
    expect([describeCount(undefined), describeCount(sumCounts([]))]).toEqual([nothing, nothing]);
  });
});

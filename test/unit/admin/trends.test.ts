import { describe, expect, it } from 'vitest';
import { outcomes } from '../../../src/admin/outcome.ts';
import { Trends } from '../../../src/admin/trends.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

const refused = (record: Partial<ExchangeRecord>) =>
  exchangeRecord({ decision: 'refused', status: 401, rejection: 'access-token-missing', ...record });
const sum = (counts: readonly number[] | undefined) => (counts ?? []).reduce((a, b) => a + b, 0);

describe('outcomes over time', () => {
  it.each([
    ['passed', exchangeRecord()],
    ['passed', exchangeRecord({ status: 404 })],
    ['passed', exchangeRecord({ decision: 'answered' })],
    ['passed', exchangeRecord({ decision: 'aborted', status: 0 })],
    ['passed', refused({ status: 404, rejection: 'url-not-found' })],
    ['passed', refused({ status: 422, rejection: 'url-missing' })],
    ['refused', refused({})],
    ['refused', refused({ status: 503, rejection: 'overloaded' })],
    ['observed', exchangeRecord({ observed: 'access-token-missing' })],
    ['failed', exchangeRecord({ status: 500 })],
    ['failed', refused({ status: 502, rejection: 'upstream-unreachable' })],
    ['failed', refused({ status: 418, rejection: 'tag-store-unavailable' })],
    ['failed', exchangeRecord({ decision: 'aborted', status: 200 })],
  ] as const)('count each exchange once: %s', (outcome, record) => {
    const series = new Trends();
    series.note(record, 1_000_000);
    const reading = series.read('5m', 1_000_000).outcomes;
    for (const one of outcomes) expect(sum(reading[one]), one).toBe(one === outcome ? 1 : 0);
  });

  it('move on, and drop steps older than the range', () => {
    const series = new Trends();
    const at = (seconds: number) => 1_000_000_200 + seconds * 1_000;
    for (const seconds of [0, 4, 5]) series.note(exchangeRecord(), at(seconds));
    const passed = (seconds: number) => series.read('5m', at(seconds)).outcomes.passed;
    expect(passed(9).slice(-3)).toEqual([0, 2, 1]);
    expect(series.read('5m', at(9)).endMs % 5_000).toBe(0);
    expect(sum(passed(290))).toBe(3);
    expect(sum(passed(310))).toBe(0);
    expect(sum(series.read('1h', at(310)).outcomes.passed)).toBe(3);
    expect(sum(series.read('1h', at(3_700)).outcomes.passed)).toBe(0);
    expect(sum(series.read('24h', at(3_700)).outcomes.passed)).toBe(3);
    expect(sum(series.read('24h', at(90_000)).outcomes.passed)).toBe(0);
    series.note(exchangeRecord(), at(90_000));
    for (const range of ['5m', '1h', '24h'] as const)
      expect(series.read(range, at(90_000)).outcomes.passed.at(-1), range).toBe(1);
  });
});

describe('the ranking', () => {
  it('is by reason, row and client, each with counts over time', () => {
    const series = new Trends();
    const expired = { rejection: 'access-token-invalid', reason: 'expired', clientAddress: '7' } as const;
    for (const atMs of [1_000, 1_000, 7_000]) series.note(refused({ ...expired, route: '/carts' }), atMs);
    series.note(exchangeRecord({ route: '/carts', observed: 'access-token-missing', durationMs: 50 }), 7_000);
    series.note(refused({ status: 504, rejection: 'upstream-timeout', route: '*' }), 7_000);
    series.note(refused({ status: 404, rejection: 'url-not-found', route: '*' }), 7_000);
    const { reasons, rows, clients } = series.read('5m', 7_000);
    expect(reasons).toMatchObject([
      { kind: 'refused', rejection: 'access-token-invalid', reason: 'expired', requests: 3 },
      { kind: 'observed', rejection: 'access-token-missing', requests: 1 },
      { kind: 'outage', rejection: 'upstream-timeout', requests: 1 },
    ]);
    expect(reasons[0]?.counts.slice(-2)).toEqual([2, 1]);
    expect(rows).toMatchObject([
      { method: 'GET', route: '/carts', requests: 4, refused: 3, observed: 1, failed: 0 },
      { method: 'GET', route: '*', requests: 2, refused: 0, observed: 0, failed: 1 },
    ]);
    expect(Math.abs((rows[0]?.p95 ?? 0) / 50 - 1)).toBeLessThan(0.13);
    expect(clients).toMatchObject([
      { client: '7', requests: 3, last: { rejection: 'access-token-invalid', reason: 'expired' } },
      { client: '192.0.2.1', requests: 1 },
    ]);
    expect(series.read('5m', 400_000).reasons).toEqual([]);
    expect(series.read('1h', 400_000).reasons).toHaveLength(3);
  });

  it('is bounded: a flood of clients does not displace the largest ones', () => {
    const series = new Trends();
    for (let i = 0; i < 50; i++) series.note(refused({ clientAddress: 'great' }), 10_000);
    for (let i = 0; i < 5_000; i++) series.note(refused({ clientAddress: `small ${i}` }), 10_000);
    for (let i = 0; i < 9; i++) series.note(refused({ clientAddress: 'late' }), 11_500 + i);
    const { clients } = series.read('5m', 12_000);
    const rest = new Array(10).fill({});
    expect(clients).toMatchObject([
      { client: 'great', requests: 50 },
      { client: 'late', requests: 9 },
      ...rest,
    ]);
  });
});

it('latency is given in total, for the shop and for shopward, without aborted requests and WebSockets', () => {
  const series = new Trends();
  for (let i = 0; i < 100; i++) series.note(exchangeRecord({ durationMs: 30, upstreamMs: 20 }), 1_000);
  // A refusal counts for shopward only.
  series.note(refused({ durationMs: 2 }), 6_000);
  series.note(exchangeRecord({ decision: 'aborted', status: 0, durationMs: 900 }), 6_000);
  series.note(exchangeRecord({ status: 101, durationMs: 900_000 }), 6_000);
  const { latency } = series.read('5m', 6_000);
  for (const [share, ms] of [
    ['whole', 30],
    ['shop', 20],
    ['own', 10],
  ] as const)
    expect(Math.abs((latency[share].p50.at(-2) ?? 0) / ms - 1), share).toBeLessThan(0.14);
  expect([latency.whole.p50.at(-3), latency.shop.p99.at(-1)]).toEqual([null, null]);
  expect(latency.own.p99.at(-1)).toBeLessThan(3);
});

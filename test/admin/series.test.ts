import { describe, expect, it } from 'vitest';
import { outcomes } from '../../src/admin/outcome.ts';
import { percentileOf, Series } from '../../src/admin/series.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
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
  ] as const)('have one place for each exchange: %s', (outcome, record) => {
    const series = new Series();
    series.note(record, 1_000_000);
    const reading = series.read('5m', 1_000_000).outcomes;
    for (const one of outcomes) expect(sum(reading[one]), one).toBe(one === outcome ? 1 : 0);
  });

  it('move on, and forget what is older than their range', () => {
    const series = new Series();
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

  it('begin anew when the clock was far ahead, and is set right', () => {
    const series = new Series();
    const nowMs = 1_000_000_000;
    series.note(exchangeRecord(), nowMs + 3_600_000);
    for (const ms of [0, 6_000, 60_000]) series.note(refused({}), nowMs + ms);
    const { endMs, outcomes } = series.read('5m', nowMs + 60_000);
    expect(endMs).toBeLessThanOrEqual(nowMs + 65_000);
    expect(outcomes.refused.filter((count) => count > 0)).toEqual([1, 1, 1]);
    expect(sum(outcomes.passed)).toBe(0);
  });
});

it('refusals, would-be refusals and outages have their names, each in a place of its own', () => {
  const series = new Series();
  series.note(refused({}), 1_000);
  series.note(refused({}), 1_000);
  series.note(exchangeRecord({ observed: 'access-token-missing' }), 1_000);
  series.note(refused({ status: 504, rejection: 'upstream-timeout' }), 1_000);
  series.note(refused({ status: 404, rejection: 'url-not-found' }), 1_000);
  const { refusals, observed, outages } = series.read('5m', 1_000);
  const sums = (named: Readonly<Record<string, readonly number[]>>) =>
    Object.fromEntries(Object.entries(named).map(([name, counts]) => [name, sum(counts)]));
  expect([sums(refusals), sums(observed), sums(outages)]).toEqual([
    { 'access-token-missing': 2 },
    { 'access-token-missing': 1 },
    { 'upstream-timeout': 1 },
  ]);
});

describe('latency', () => {
  it('is given for the whole, for the shop, and for what is left', () => {
    const series = new Series();
    for (let i = 0; i < 100; i++) series.note(exchangeRecord({ durationMs: 30, upstreamMs: 20 }), 1_000);
    const { latency } = series.read('5m', 1_000);
    const last = (share: keyof typeof latency) => latency[share].p50.at(-1) ?? 0;
    for (const [share, ms] of [
      ['whole', 30],
      ['shop', 20],
      ['own', 10],
    ] as const) {
      expect(last(share) / ms, share).toBeGreaterThan(0.87);
      expect(last(share) / ms, share).toBeLessThan(1.15);
    }
    expect(latency.whole.p50.at(-2)).toBeNull();
  });

  it('of what was never asked of the shop is all our own; who left, and an upgraded line, have none', () => {
    const series = new Series();
    series.note(refused({ durationMs: 2 }), 1_000);
    series.note(exchangeRecord({ decision: 'aborted', status: 0, durationMs: 900 }), 1_000);
    series.note(exchangeRecord({ status: 101, durationMs: 900_000 }), 1_000);
    const { latency } = series.read('5m', 1_000);
    expect(latency.shop.p99.at(-1)).toBeNull();
    expect(latency.own.p99.at(-1)).toBeLessThan(3);
  });

  it('has percentiles that are at most an eighth off, whatever the spread', () => {
    const series = new Series();
    for (let ms = 1; ms <= 1_000; ms++) series.note(exchangeRecord({ durationMs: ms }), 1_000);
    const { p50, p95, p99 } = series.read('5m', 1_000).latency.whole;
    for (const [got, wanted] of [
      [p50, 500],
      [p95, 950],
      [p99, 990],
    ] as const) {
      expect(Math.abs((got.at(-1) ?? 0) / wanted - 1)).toBeLessThan(0.13);
    }
    expect(percentileOf(new Uint32Array(61), 0.5)).toBeNull();
  });

  it.each([Number.NaN, -5, 0, Number.POSITIVE_INFINITY, 1e12])(
    'takes %s ms without a fault',
    (durationMs) => {
      const series = new Series();
      series.note(exchangeRecord({ durationMs }), 1_000);
      expect(sum(series.read('5m', 1_000).outcomes.passed)).toBe(1);
    },
  );
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createMemoryBuckets, type Rate, type TakeToken } from '../../../src/rate-limits/buckets.ts';
import { expected, type Moments, scripts, second, startUs, three } from './bucket-moments.ts';

describe('a bucket', () => {
  const allowed = (rate: Rate, moments: Moments) => expected(rate, moments).map(({ isAllowed }) => isAllowed);

  it('allows all requests at once, then one after each cost', () => {
    expect(allowed(three, [0, 0, 0, 0, second - 1, second, second, 2 * second])).toEqual([
      ...[true, true, true, false, false, true, false, true],
    ]);
    expect(expected(three, [0, 0, 0, 0, 400_000])).toEqual([
      { isAllowed: true, remaining: 2, waitUs: second },
      { isAllowed: true, remaining: 1, waitUs: 2 * second },
      { isAllowed: true, remaining: 0, waitUs: 3 * second },
      { isAllowed: false, remaining: 0, waitUs: second },
      { isAllowed: false, remaining: 0, waitUs: 600_000 },
    ]);
  });

  it('never allows more than its rate, at any times, and asks for no longer wait than per', () => {
    const rates = fc.record({
      requests: fc.integer({ min: 1, max: 20 }),
      perMs: fc.integer({ min: 1000, max: 9000 }),
    });
    const steps = fc.array(fc.integer({ min: 0, max: 2 * second }), { maxLength: 60 });
    fc.assert(
      fc.property(rates, steps, (rate, gaps) => {
        const moments: number[] = [];
        for (const gap of gaps) moments.push((moments.at(-1) ?? 0) + gap);
        const taken = expected(rate, moments);
        const passed = moments.filter((_, i) => taken[i]?.isAllowed);
        const cost = Math.ceil((rate.perMs * 1000) / rate.requests);
        for (const [i, from] of passed.entries()) {
          // These are one request more than the bucket has tokens, so a token came back in between.
          const until = passed[i + rate.requests];
          if (until !== undefined) expect(until - from).toBeGreaterThanOrEqual(cost);
        }
        for (const { isAllowed, waitUs, remaining } of taken) {
          expect(waitUs).toBeLessThanOrEqual(cost * rate.requests);
          expect(remaining).toBeLessThan(rate.requests);
          if (!isAllowed) expect(waitUs).toBeGreaterThan(0);
        }
      }),
    );
  });

  it('asks for no longer wait than per after the clock was set back by a day', () => {
    const day = 86_400 * second;
    const all = expected(three, [0, 0, -day, second - day]);
    expect(all[2]).toEqual({ isAllowed: false, remaining: 0, waitUs: second });
    expect(all[3]).toEqual({ isAllowed: true, remaining: 0, waitUs: 3 * second });
  });
});

it('the memory store gives the same answers, and keeps 50,000 clients', async () => {
  for (const [rate, moments] of scripts) {
    let now = 0;
    const take: TakeToken = createMemoryBuckets(() => now);
    const taken = moments.map((moment) => {
      now = startUs + moment;
      return take('a', rate);
    });
    expect(taken).toEqual(expected(rate, moments));
  }
  const take = createMemoryBuckets(() => startUs);
  const once: Rate = { requests: 1, perMs: 1000 };
  for (let i = 0; i <= 50_000; i += 1) take(`client ${i}`, once);
  expect(await take('client 0', once)).toMatchObject({ isAllowed: true });
  expect(await take('client 50000', once)).toMatchObject({ isAllowed: false });
});

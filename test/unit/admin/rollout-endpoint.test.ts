import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { askEndpoint } from '../../../src/admin/admin-endpoint.ts';
import { createRolloutEndpoint } from '../../../src/admin/rollout-endpoint.ts';
import { finish } from '../../../src/lib/slices.ts';
import type { Counting } from '../../../src/rollout/counts.ts';
import { makeReport, type RolloutReport } from '../../../src/rollout/report.ts';

interface Answer extends RolloutReport {
  readonly found: number;
  readonly next: number | null;
}

/** A report in which every third of the first 300 rows would refuse requests. */
function reportOf(rows: number, nowMs: number): RolloutReport {
  const listed = Array.from({ length: rows }, (_, i) => ({
    method: 'GET' as const,
    template: `/items-${i}`,
    observe: true,
  }));
  const times = { sinceMs: nowMs, lastSeenMs: nowMs };
  const observed = { kind: 'observed', method: 'GET', rejection: 'access-token-missing' } as const;
  const none = { beyond: 0, reason: undefined, days: {}, clients: {} };
  const refused = listed.filter((_, i) => i % 3 === 0 && i < 300);
  const counting: Counting = {
    entries: refused.map(({ template }, i) => ({
      ...{ ...observed, ...times, ...none },
      ...{ route: template, requests: i + 1 },
    })),
    rows: Object.fromEntries(
      listed.map(({ template }) => [`GET ${template}`, { rule: '', ...times, requests: 1 }]),
    ),
    ...{ wholeSinceMs: 0, why: '', problems: [] },
  };
  return finish(makeReport(counting, listed, false, nowMs));
}

describe('the roll-out', () => {
  const open = (rows: number) => {
    let made = 0;
    const endpoint = createRolloutEndpoint(async () => {
      made++;
      return reportOf(rows, 1_800_000_000_000 + made);
    });
    return {
      ask: async (query: string) => (await askEndpoint(endpoint, query)).body as Answer,
      refusal: async (query: string) => await askEndpoint(endpoint, query),
      made: () => made,
    };
  };

  it('comes page by page, rows that would refuse requests first', async () => {
    const { ask } = open(2_500);
    const seen: string[] = [];
    for (let next: number | null = 0; next !== null; ) {
      const page = await ask(`limit=400&offset=${next}`);
      seen.push(...page.rows.map(({ row }) => row));
      next = page.next;
    }
    expect(new Set(seen).size).toBe(2_500);
    expect(seen.slice(0, 2)).toEqual(['GET /items-297', 'GET /items-294']);
    expect(await ask('limit=1')).toMatchObject({ found: 2_500, next: 1, verdict: 'refuses' });
  });

  it('is made once for simultaneous requests', async () => {
    const { ask, made } = open(10);
    await Promise.all([ask(''), ask('limit=1'), ask('offset=1')]);
    expect(made()).toBe(1);
    await ask('');
    expect(made()).toBe(2);
  });

  it('of a long list is kept for 10 s, so that its pages match', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const { ask, made } = open(2_500);
    const first = await ask('');
    vi.advanceTimersByTime(9_999);
    expect((await ask('offset=100')).nowMs).toBe(first.nowMs);
    vi.advanceTimersByTime(1);
    expect((await ask('')).nowMs).toBeGreaterThan(first.nowMs);
    expect(made()).toBe(2);
  });

  it('is made again after a failure', async () => {
    let attempts = 0;
    const endpoint = createRolloutEndpoint(async () => {
      if (++attempts === 1) throw new Error('once');
      return reportOf(1, 1);
    });
    const ask = async () => await askEndpoint(endpoint, '');
    await expect(ask).rejects.toThrow('once');
    expect(await ask()).toMatchObject({ status: 200 });
  });

  it.each([
    ['limit=x', 'limit must be a whole number, 999999999 at most'],
    ['offset=-1', 'offset must be a whole number, 999999999 at most'],
    ['order=met', 'unknown parameter order; known are limit, offset'],
    ['kind=met', 'unknown parameter kind; known are limit, offset'],
    ['limit=1&limit=2', 'limit is given twice'],
  ])('rejects the query %s with 400', async (query, error) => {
    expect(await open(1).refusal(query)).toEqual({ status: 400, body: { error } });
  });
});

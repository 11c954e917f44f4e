import { describe, expect, it } from 'vitest';
import { Activity } from '../../src/admin/activity.ts';
import type { CountedRow } from '../../src/admin/row-counts.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

const refused = (record: Partial<ExchangeRecord>) =>
  exchangeRecord({ decision: 'refused', status: 401, rejection: 'access-token-missing', ...record });

describe('counts of rows', () => {
  const rows = [
    { method: 'GET', template: '/carts' },
    { method: 'ANY', template: '/orders/**' },
    { method: 'PATCH', template: '/carts/{id}' },
    { method: 'DELETE', template: '/carts/{id}' },
    { method: 'ANY', template: '/mixed' },
    { method: 'GET', template: '/mixed' },
  ] as const;
  const countsOf = async ({ rows: counts }: Activity, list: readonly CountedRow[]) => {
    const countOf = await counts.of(list);
    return list.map((_, place) => countOf(place));
  };
  const requestsOf = async (records: readonly Partial<ExchangeRecord>[]) => {
    const activity = new Activity();
    for (const record of records) activity.note(exchangeRecord(record), 1_000);
    const counts = (await countsOf(activity, rows)).map((count) => count?.requests ?? 0);
    expect(activity.rows.countUnmet(rows)).toBe(counts.filter((requests) => requests === 0).length);
    return counts;
  };

  it.each([
    ['nothing', [], [0, 0, 0, 0, 0, 0]],
    ['an open route', [{ route: '*', path: '/carts' }], [0, 0, 0, 0, 0, 0]],
    ['an own endpoint', [{ route: '/url-resolver' }], [0, 0, 0, 0, 0, 0]],
    [
      'GET and HEAD of one row',
      [{ route: '/carts' }, { route: '/carts', method: 'HEAD' }],
      [2, 0, 0, 0, 0, 0],
    ],
    ['any method', [{ route: '/orders/**' }, { route: '/orders/**', method: 'POST' }], [0, 2, 0, 0, 0, 0]],
    ['the method of a row', [{ route: '/carts/{id}', method: 'DELETE' }], [0, 0, 0, 1, 0, 0]],
    [
      'a form POST, which the first row decides',
      [{ route: '/carts/{id}', method: 'POST' }],
      [0, 0, 1, 0, 0, 0],
    ],
    [
      'rows of one path with and without a method',
      [{ route: '/mixed' }, { route: '/mixed', method: 'PUT' }, { route: '/mixed', method: 'PUT' }],
      [0, 0, 0, 0, 2, 1],
    ],
  ] as const)('%s', async (_, records, expected) => {
    expect(await requestsOf(records)).toEqual(expected);
  });

  it('rows of one route are met by the same requests', async () => {
    const twins = [
      { method: 'GET', template: '/customers/{reference}' },
      { method: 'GET', template: '/Customers/{id}' },
      { method: 'PATCH', template: '/customers/{id}' },
    ] as const;
    const activity = new Activity();
    activity.note(exchangeRecord({ route: '/customers/{reference}' }), 1);
    expect((await countsOf(activity, twins)).map((count) => count?.requests)).toEqual([1, 1, undefined]);
    expect(activity.rows.countUnmet(twins)).toBe(1);
  });

  it('holds refusals by name, observed ones apart, and when a row was last met', async () => {
    const activity = new Activity();
    activity.note(refused({ route: '/carts' }), 1_000);
    activity.note(refused({ route: '/carts', rejection: 'access-token-invalid' }), 2_000);
    activity.note(exchangeRecord({ route: '/carts', observed: 'access-token-missing' }), 3_000);
    const [count, never] = await countsOf(activity, rows);
    expect(count).toEqual({
      requests: 3,
      refusals: new Map([
        ['access-token-missing', 1],
        ['access-token-invalid', 1],
      ]),
      observed: new Map([['access-token-missing', 1]]),
      outages: new Map(),
      lastSeenMs: 3_000,
    });
    expect(never).toBeUndefined();
    expect(activity.total.requests).toBe(3);
    expect(activity.open.requests).toBe(0);
  });

  it('separates outages from refusals, and counts no answer of the resolver as either', () => {
    const activity = new Activity();
    activity.note(refused({ status: 502, rejection: 'upstream-unreachable' }), 1_000);
    activity.note(refused({ status: 503, rejection: 'tag-store-unavailable' }), 1_000);
    activity.note(refused({ status: 404, rejection: 'url-not-found' }), 1_000);
    activity.note(refused({ status: 503, rejection: 'overloaded' }), 1_000);
    expect(activity.total).toMatchObject({
      requests: 4,
      refusals: new Map([['overloaded', 1]]),
      outages: new Map([
        ['upstream-unreachable', 1],
        ['tag-store-unavailable', 1],
      ]),
    });
  });

  it('survives a reload, and counts no more routes than its limit', async () => {
    const activity = new Activity();
    activity.note(exchangeRecord({ route: '/carts' }), 1);
    for (let i = 0; i < 20_100; i++) activity.note(exchangeRecord({ route: `/other/${i}` }), 1);
    expect((await countsOf(activity, rows))[0]?.requests).toBe(1);
    expect(await countsOf(activity, [{ method: 'GET', template: '/other/20099' }])).toEqual([undefined]);
    expect(activity.total.requests).toBe(20_101);
  });
});

it('knows how the upstream does from exchanges alone', () => {
  const activity = new Activity();
  const { upstream } = activity;
  const note: Activity['note'] = (record, nowMs) => activity.note(record, nowMs);
  note(exchangeRecord(), 1_000);
  note(refused({ route: '/carts' }), 2_000);
  note(exchangeRecord({ decision: 'answered' }), 3_000);
  expect(upstream).toEqual({
    answers: 1,
    lastAnswerMs: 1_000,
    failures: 0,
    lastFailureMs: 0,
    lastFailure: undefined,
    failingSinceMs: 0,
  });
  note(refused({ status: 504, rejection: 'upstream-timeout' }), 4_000);
  note(refused({ status: 502, rejection: 'upstream-unreachable' }), 5_000);
  expect(upstream).toMatchObject({ failures: 2, lastFailureMs: 5_000, failingSinceMs: 4_000 });
  expect(upstream.lastFailure).toBe('upstream-unreachable');
  note(exchangeRecord(), 6_000);
  expect(upstream.failingSinceMs).toBe(0);
});

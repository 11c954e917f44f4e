import { describe, expect, it } from 'vitest';
import { Activity } from '../../src/admin/activity.ts';
import type { CountedRow } from '../../src/admin/row-counts.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

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

  it('survives a reload, and counts no more routes than its limit', async () => {
    const activity = new Activity();
    activity.note(exchangeRecord({ route: '/carts' }), 1);
    for (let i = 0; i < 20_100; i++) activity.note(exchangeRecord({ route: `/other/${i}` }), 1);
    expect((await countsOf(activity, rows))[0]?.requests).toBe(1);
    expect(await countsOf(activity, [{ method: 'GET', template: '/other/20099' }])).toEqual([undefined]);
    expect(activity.total.requests).toBe(20_101);
  });
});

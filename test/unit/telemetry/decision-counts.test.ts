import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import type { ProtectedResource } from '../../../src/access/protected-list.ts';
import { RowCounts } from '../../../src/admin/row-counts.ts';
import { bounds, DecisionCounts, dayMs, sumRows } from '../../../src/telemetry/decision-counts.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

function listOf(rows: readonly Pick<ProtectedResource, 'method' | 'template'>[]) {
  const rest = { group: 'A', scopes: [], observe: false, source: { file: 'l', line: 1, column: 1 } };
  return compileProtectedList({ rows: rows.map((row) => ({ ...row, ...rest })) }, { ignoredPrefixes: [] });
}

describe('counts of rows', () => {
  const rows = listOf([
    { method: 'GET', template: '/carts' },
    { method: 'ANY', template: '/orders/**' },
    { method: 'PATCH', template: '/carts/{id}' },
    { method: 'DELETE', template: '/carts/{id}' },
    { method: 'GET', template: '/mixed' },
    { method: 'ANY', template: '/mixed' },
  ]);
  const countsOf = (decisions: DecisionCounts, list: ReturnType<typeof listOf>) => {
    const counts = new RowCounts(decisions);
    return Array.from(list.rows, (row) => sumRows(counts.countOf(list, row)).requests);
  };
  const unmetOf = (decisions: DecisionCounts, list: ReturnType<typeof listOf>) =>
    new RowCounts(decisions).countUnmet(list);

  it.each([
    ['an open route', 'GET * /carts', [0, 0, 0, 0, 0, 0]],
    ['an own endpoint', 'GET /url-resolver', [0, 0, 0, 0, 0, 0]],
    ['GET and HEAD of one row', 'GET /carts, HEAD /carts', [2, 0, 0, 0, 0, 0]],
    ['any method', 'GET /orders/**, POST /orders/**', [0, 2, 0, 0, 0, 0]],
    ['the method of a row', 'DELETE /carts/{id}', [0, 0, 0, 1, 0, 0]],
    ['a form POST, which the first row decides', 'POST /carts/{id}', [0, 0, 1, 0, 0, 0]],
    ['rows of one path with and without a method', 'GET /mixed, PUT /mixed, PUT /mixed', [0, 0, 0, 0, 1, 2]],
  ])('%s', (_, requests, expected) => {
    const decisions = new DecisionCounts();
    for (const request of requests.split(', ')) {
      const [method, route, path] = request.split(' ');
      const record = { method, route, path: path ?? '/' } as Partial<ExchangeRecord>;
      decisions.note(exchangeRecord(record), 1_000);
    }
    expect(countsOf(decisions, rows)).toEqual(expected);
    expect(unmetOf(decisions, rows)).toBe(expected.filter((requests) => requests === 0).length);
  });

  it('a request counts for all rows of its method and route', () => {
    const twins = listOf([
      { method: 'GET', template: '/customers/{reference}' },
      { method: 'GET', template: '/Customers/{id}' },
      { method: 'PATCH', template: '/customers/{id}' },
    ]);
    const decisions = new DecisionCounts();
    decisions.note(exchangeRecord({ route: '/customers/{reference}' }), 1);
    expect(countsOf(decisions, twins)).toEqual([1, 1, 0]);
    expect(unmetOf(decisions, twins)).toBe(1);
  });

  it('survive a reload; those of rows beyond the limit are only in the sum', () => {
    const decisions = new DecisionCounts();
    decisions.note(exchangeRecord({ route: '/carts' }), 1);
    for (let i = 1; i <= bounds.rows; i++) decisions.note(exchangeRecord({ route: `/other/${i}` }), 1);
    expect(countsOf(decisions, rows)[0]).toBe(1);
    expect(countsOf(decisions, listOf([{ method: 'GET', template: `/other/${bounds.rows}` }]))).toEqual([0]);
    expect(sumRows(decisions.rows()).requests).toBe(bounds.rows + 1);
  });
});

/** The beginning of a day. */
const startMs = 20_000 * dayMs;
const missing = { route: '/carts/{id}', observed: 'access-token-missing' } as const;

function countsOf(...times: readonly number[]): DecisionCounts {
  const counts = new DecisionCounts({ forRollout: true });
  for (const atMs of times) counts.note(exchangeRecord(missing), atMs);
  return counts;
}
const entriesOf = (counts: DecisionCounts) => counts.fresh().reasons;

describe('refused requests', () => {
  it('are counted by decision, reason, row and method', () => {
    const counts = countsOf();
    const invalid = { route: '/carts/{id}', rejection: 'access-token-invalid', decision: 'refused' } as const;
    for (const reason of ['expired', 'audience', 'expired'])
      counts.note(exchangeRecord({ ...invalid, reason }), startMs);
    counts.note(exchangeRecord({ ...missing, method: 'HEAD' }), startMs);
    counts.note(exchangeRecord({ ...missing, rejection: 'upstream-timeout' }), startMs);
    counts.note(exchangeRecord({ ...missing, rejection: 'url-not-found' }), startMs);
    expect(
      entriesOf(counts)
        .filter(({ count }) => count.kind === 'refused' || count.kind === 'observed')
        .map(({ count, requests }) => [
          count.kind,
          count.rejection,
          count.reason,
          count.row.method,
          requests,
        ]),
    ).toEqual([
      ['refused', 'access-token-invalid', 'expired', 'GET', 2],
      ['refused', 'access-token-invalid', 'audience', 'GET', 1],
      ['observed', 'access-token-missing', undefined, 'GET', 1],
    ]);
    expect(sumRows(counts.rows())).toEqual({
      ...{ requests: 6, lastSeenMs: startMs, refusals: { 'access-token-invalid': 3 } },
      ...{ observed: { 'access-token-missing': 1 }, outages: { 'upstream-timeout': 1 } },
    });
  });

  it('are taken once, and stay in the sums', () => {
    const counts = countsOf(startMs, startMs + 1);
    expect(counts.take().reasons[0]?.requests).toBe(2);
    expect(entriesOf(counts)).toEqual([]);
    counts.note(exchangeRecord(missing), startMs + 2);
    expect(entriesOf(counts)).toMatchObject([{ requests: 1, sinceMs: startMs + 2 }]);
    expect(sumRows(counts.rows()).observed).toEqual({ 'access-token-missing': 3 });
  });

  it('beyond the limit of reasons are missing in the roll-out, which records since when; the sums include them', () => {
    const counts = countsOf();
    const note = (route: string, atMs: number) => counts.note(exchangeRecord({ ...missing, route }), atMs);
    for (let i = 0; i < bounds.reasons; i++) note(`/${i}`, startMs);
    expect(counts.fresh().leftOutSinceMs).toBeUndefined();
    for (const atMs of [startMs + 1, startMs + 2]) note('/more', atMs);
    expect([counts.fresh().leftOutSinceMs, entriesOf(counts).length]).toEqual([startMs + 1, bounds.reasons]);
    expect(sumRows(counts.rows()).observed).toEqual({ 'access-token-missing': bounds.reasons + 2 });
  });

  it('name 100 clients for each reason, and 5,000 together; further ones are only counted', () => {
    const counts = countsOf();
    const note = (row: number, userAgent: string) => {
      const request = { fields: ['User-Agent', userAgent] };
      counts.note(exchangeRecord({ ...missing, route: `/${row}` }), startMs, request as never);
    };
    for (let row = 0; row < 51; row++) for (let i = 0; i <= 100; i++) note(row, `${row} ${i}`);
    const entries = entriesOf(counts);
    expect(entries.map(({ clients }) => clients.size)).toEqual([...Array(50).fill(100), 0]);
    expect(entries.map(({ beyond }) => beyond)).toEqual([...Array(50).fill(1), 101]);
    note(0, '0 7');
    expect(entriesOf(counts)[0]?.clients.get('\n0 7')).toBe(2);
  });
});

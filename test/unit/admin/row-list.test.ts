import { describe, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import type { ProtectedResource } from '../../../src/access/protected-list.ts';
import { askEndpoint } from '../../../src/admin/admin-endpoint.ts';
import { RowCounts } from '../../../src/admin/row-counts.ts';
import { createRowListEndpoint } from '../../../src/admin/row-list.ts';
import { DecisionCounts } from '../../../src/telemetry/decision-counts.ts';
import { exchangeRecord } from './exchange-records.ts';

interface Page {
  readonly total: number;
  readonly found: number;
  readonly next: number | null;
  readonly rows: readonly { readonly id: string; readonly requests: number }[];
}

function listOf(count: number, templateOf = (i: number) => `/shop-${i % 7}/items-${i}`): ProtectedResource[] {
  return Array.from({ length: count }, (_, i) => ({
    method: 'GET',
    template: templateOf(i),
    group: i % 2 === 0 ? 'Even' : 'Odd',
    scopes: i === 3 ? ['read'] : [],
    observe: i % 100 === 0,
    source: { file: 'list.yaml', line: i + 3, column: 1 },
  }));
}

function openList(rows: readonly ProtectedResource[], met: readonly string[] = []) {
  const decisions = new DecisionCounts();
  for (const route of met) decisions.note(exchangeRecord({ route }), 1_000);
  decisions.note(
    exchangeRecord({ route: '/shop-5/items-5', decision: 'refused', rejection: 'access-token-missing' }),
    1,
  );
  const list = compileProtectedList({ rows }, { ignoredPrefixes: [] });
  const endpoint = createRowListEndpoint({
    file: 'list.yaml',
    list: () => list,
    reloads: { lastSuccessMs: 1 },
    counts: new RowCounts(decisions),
  });
  return async (query: string) => {
    const { status, body } = await askEndpoint(endpoint, query);
    return { status, body: body as Page };
  };
}

describe('the rows of a list', () => {
  const ask = openList(listOf(1_000), ['/shop-0/items-700']);
  const ids = async (query: string) => (await ask(query)).body.rows.map(({ id }) => id);

  it.each([
    ['q=items-99', 11, 'GET /shop-1/items-99'],
    ['q=ODD+items-99&limit=1', 6, 'GET /shop-1/items-99'],
    ['q=read', 1, 'GET /shop-3/items-3'],
    ['kind=met', 2, 'GET /shop-5/items-5'],
    ['kind=unmet', 998, 'GET /shop-0/items-0'],
    ['kind=refused', 1, 'GET /shop-5/items-5'],
    ['kind=observing', 10, 'GET /shop-0/items-0'],
    ['order=met&limit=3', 1_000, 'GET /shop-5/items-5'],
    ['order=met&limit=3&offset=1', 1_000, 'GET /shop-0/items-700'],
  ])('are searched: %s', async (query, found, first) => {
    const { body } = await ask(query);
    expect([body.total, body.found, body.rows[0]?.id]).toEqual([1_000, found, first]);
  });

  it.each(['order=list', 'order=met', 'kind=unmet'])('come page by page, each once: %s', async (query) => {
    const seen: string[] = [];
    for (let next: number | null = 0; next !== null; ) {
      const { body } = await ask(`${query}&limit=333&offset=${next}`);
      seen.push(...body.rows.map(({ id }) => id));
      next = body.next;
    }
    expect([new Set(seen).size, seen.length]).toEqual([seen.length, (await ask(query)).body.found]);
  });

  it('are limited in number and in bytes in each answer', async () => {
    expect(await ids('limit=999999')).toHaveLength(1_000);
    expect(await ids('')).toHaveLength(100);
    const long = openList(listOf(100, (i) => `/${'x'.repeat(10_000)}-${i}`));
    const { body } = await long('limit=100');
    expect(body.rows.length).toBeLessThan(30);
    expect(body.next).toBe(body.rows.length);
    // A row that is longer than the limit comes alone.
    const longest = openList(listOf(2, (i) => `/${'x'.repeat(300_000)}-${i}`));
    expect((await longest('')).body).toMatchObject({ next: 1, rows: [{ requests: 0 }] });
  });

  it.each([
    ...'kind=x order=x limit=-1 offset=1e3 limit= verdict=safe Q=x'.split(' '),
    `q=${'x'.repeat(201)}`,
  ])('an invalid query %s gets 400', async (query) => {
    expect((await ask(query)).status).toBe(400);
  });
});

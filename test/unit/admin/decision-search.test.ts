import { describe, expect, it } from 'vitest';
import { askEndpoint } from '../../../src/admin/admin-endpoint.ts';
import { DecisionLog } from '../../../src/admin/decision-log.ts';
import { createDecisionSearchEndpoint } from '../../../src/admin/decision-search.ts';
import type { ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from './exchange-records.ts';

interface Found {
  readonly kept: number;
  readonly keptSinceMs: number | null;
  readonly found: number;
  readonly decisions: readonly { readonly requestId: string }[];
  readonly next: number | null;
  readonly counts: Readonly<Record<'reasons' | 'clients' | 'rows', readonly (readonly [string, number])[]>>;
}

const refused = (record: Partial<ExchangeRecord>) =>
  exchangeRecord({ decision: 'refused', status: 401, rejection: 'access-token-invalid', ...record });

const records = [
  exchangeRecord({ requestId: 'one', path: '/abstract-products/134', clientAddress: '192.0.2.1' }),
  refused({ requestId: 'two', path: '/Carts/7', route: '/carts/{cart_id}', reason: 'expired' }),
  exchangeRecord({ requestId: 'three', method: 'POST', route: '/orders', observed: 'access-token-missing' }),
  refused({
    requestId: 'four',
    status: 502,
    rejection: 'upstream-unreachable',
    clientAddress: '2001:db8::1',
  }),
];

async function search(query: string, all: readonly ExchangeRecord[] = records, capacity = 100) {
  const log = new DecisionLog(capacity);
  for (const [i, record] of all.entries()) log.note(record, 1_000 * (i + 1));
  const { status, body } = await askEndpoint(createDecisionSearchEndpoint(log), query);
  return { status, body: body as Found };
}
const idsOf = async (query: string, all = records) =>
  (await search(query, all)).body.decisions.map(({ requestId }) => requestId);

describe('the search of decisions', () => {
  it.each([
    ['', ['four', 'three', 'two', 'one']],
    ['id=two', ['two']],
    ['path=carts', ['two']],
    ['row=%2Forders', ['three']],
    ['row=*', ['four', 'one']],
    ['method=post', ['three']],
    ['reason=expired', ['two']],
    ['reason=access-token', ['three', 'two']],
    ['reason=upstream', ['four']],
    ['client=2001:DB8', ['four']],
    ['outcome=refused', ['two']],
    ['outcome=failed', ['four']],
    ['outcome=observed', ['three']],
    ['q=abstract', ['one']],
    ['q=get+%2Fcarts', ['two']],
    ['path=carts&reason=missing', []],
    ['sinceMs=3000', ['four', 'three']],
    ['path=%25', []],
  ])('%s', async (query, expected) => {
    expect(await idsOf(query)).toEqual(expected);
  });

  it('finds decisions by the status or the error code that a client got', async () => {
    const records = [
      refused({ requestId: 'one', rejection: 'access-token-missing' }),
      refused({ requestId: 'two', status: 412, rejection: 'if-match-invalid' }),
      exchangeRecord({ requestId: 'three', path: '/carts/4120', status: 200 }),
    ];
    expect(await idsOf('q=002', records)).toEqual(['one']);
    expect(await idsOf('q=401', records)).toEqual(['one']);
    expect(await idsOf('q=412', records)).toEqual(['three', 'two']);
  });

  const wrong = [
    'outcome=any',
    'limit=-1',
    'before=x',
    'sinceMs=1e3',
    `path=${'x'.repeat(201)}`,
    'unknown=x',
  ];
  it.each(wrong)('refuses %s', async (query) => {
    expect((await search(query)).status).toBe(400);
  });

  it('goes page by page, and counts common values of all matches', async () => {
    const many = Array.from({ length: 25 }, (_, i) =>
      refused({ requestId: `r${i}`, clientAddress: i % 5 === 0 ? '192.0.2.9' : '192.0.2.1' }),
    );
    const first = (await search('limit=10', many)).body;
    expect(first).toMatchObject({ found: 25, kept: 25, keptSinceMs: 1_000 });
    expect(first.decisions.map(({ requestId }) => requestId).slice(0, 2)).toEqual(['r24', 'r23']);
    expect(Object.fromEntries(first.counts.clients)).toEqual({ '192.0.2.1': 20, '192.0.2.9': 5 });
    expect(first.counts.reasons).toEqual([['access-token-invalid', 25]]);
    const second = (await search(`limit=10&before=${first.next}`, many)).body;
    expect(second.decisions.map(({ requestId }) => requestId)).toContain('r14');
    const third = (await search(`limit=10&before=${second.next}`, many)).body;
    expect([third.decisions.length, third.next]).toEqual([5, null]);
  });

  it('searches the kept decisions, and returns at most 200', async () => {
    const many = Array.from({ length: 1_000 }, (_, i) => refused({ requestId: `r${i}` }));
    const { body } = await search('limit=100000', many, 300);
    expect([body.kept, body.found, body.decisions.length]).toEqual([300, 300, 200]);
    expect(body.keptSinceMs).toBe(701_000);
  });
});

it('runs one search at a time, leaves the event loop free during each, and refuses more than eight', async () => {
  const log = new DecisionLog(5_000);
  for (let i = 0; i < 5_000; i++) log.note(exchangeRecord({ path: `/carts/${i}` }), 10 * i);
  const endpoint = createDecisionSearchEndpoint(log);
  const ended: number[] = [];
  let ticks = 0;
  let isDone = false;
  const count = () => {
    ticks += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const answers = await Promise.all(
    Array.from({ length: 16 }, async () => {
      const { status } = await askEndpoint(endpoint, 'q=none-has-this');
      if (status === 200) ended.push(ticks);
      return status;
    }),
  );
  isDone = true;
  expect(answers.filter((status) => status === 200)).toHaveLength(8);
  expect(answers.filter((status) => status === 503)).toHaveLength(8);
  // Each search ends in a later tick than the one before.
  expect(new Set(ended).size).toBe(8);
  expect((await askEndpoint(endpoint, 'path=carts')).status).toBe(200);
});

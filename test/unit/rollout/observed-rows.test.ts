import { describe, expect, it } from 'vitest';
import { finish } from '../../../src/lib/slices.ts';
import { combineAsked, type ListedRow, ObservedRows, RowIndex } from '../../../src/rollout/observed-rows.ts';
import { DecisionCounts, dayMs } from '../../../src/telemetry/decision-counts.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const startMs = 20_000 * dayMs;
const carts: ListedRow = { method: 'GET', template: '/carts/{id}', scopes: [], observe: true };
const orders: ListedRow = { method: 'POST', template: '/orders', scopes: ['order'], observe: true };
const enforced: ListedRow = { method: 'GET', template: '/enforced', scopes: [], observe: false };

function observe(
  first: readonly ListedRow[],
  more: { isObserving?: () => boolean; rules?: () => string } = {},
) {
  const state = { rows: first, nowMs: startMs };
  const rows = new ObservedRows({
    ...{ rows: () => state.rows, now: () => state.nowMs, isObserving: () => false, rules: () => 'rules' },
    ...more,
  });
  const follow = async (list: readonly ListedRow[], nowMs: number) => {
    Object.assign(state, { rows: list, nowMs });
    await rows.refresh();
  };
  return { rows, state, follow };
}

it('a request counts for the row of its method, else of any method, else the first of its template', () => {
  const index = new RowIndex();
  for (const [method, template] of [
    ['PUT', '/a'],
    ['ANY', '/a'],
    ['GET', '/a'],
    ['PATCH', '/b'],
    ['PUT', '/b'],
  ] as const) {
    index.add({ method, template });
  }
  expect(index.find('GET', '/a')).toBe('GET /a');
  expect(index.find('POST', '/a')).toBe('ANY /a');
  expect(index.find('POST', '/b')).toBe('PATCH /b');
  expect(index.find('PUT', '/b')).toBe('PUT /b');
  expect(index.find('GET', '/c')).toBeUndefined();
  expect(index.find('GET', '*')).toBe('*');
});

describe('rows that only observe', () => {
  it('are known with since when, as long as their rule is the same', async () => {
    const { rows, follow } = observe([carts, orders, enforced]);
    await rows.refresh();
    expect(rows.since).toEqual({ 'GET /carts/{id}': startMs, 'POST /orders': startMs });
    const before = rows.rules;
    await rows.refresh();
    expect(rows.rules).toBe(before);
    await follow([carts, { ...orders, scopes: ['other'] }, { ...enforced, observe: true }], startMs + 5);
    expect(rows.since).toEqual({
      'GET /carts/{id}': startMs,
      'POST /orders': startMs + 5,
      'GET /enforced': startMs + 5,
    });
  });

  it('are all of them, and requests of no row, where everything is observed', async () => {
    const { rows } = observe([carts, enforced], { isObserving: () => true });
    await rows.refresh();
    expect(Object.keys(rows.since)).toEqual(['GET /carts/{id}', 'GET /enforced', '*']);
    const { fresh } = passed('GET *');
    expect(Object.keys(finish(rows.askedOf(fresh().rows)))).toEqual(['*']);
  });
});

/** Counts requests that were let pass. */
function passed(...requests: readonly string[]) {
  const counts = new DecisionCounts();
  counts.countsPassed = true;
  const note = (request: string, nowMs: number) => {
    const [method, route] = request.split(' ') as ['GET', string];
    counts.note(exchangeRecord({ method, route }), nowMs);
  };
  for (const request of requests) note(request, startMs);
  return { note, fresh: () => counts.fresh() };
}

describe('requests of an observed row', () => {
  it('count by day, today and the eight before; those of others do not', async () => {
    const { rows } = observe([carts, enforced]);
    await rows.refresh();
    const { note, fresh } = passed('GET /enforced', 'GET /elsewhere', 'GET *');
    for (const day of [0, 0, 1, 9]) note('GET /carts/{id}', startMs + day * dayMs + 7);
    note('PUT /carts/{id}', startMs + 9 * dayMs);
    expect(finish(rows.askedOf(fresh().rows))).toEqual({
      'GET /carts/{id}': { lastSeenMs: startMs + 9 * dayMs + 7, days: { 20001: 1, 20009: 2 } },
    });
  });

  it('are forgotten with their row', async () => {
    const { rows, follow } = observe([carts, orders]);
    await rows.refresh();
    const { fresh } = passed('GET /carts/{id}', 'POST /orders');
    await follow([orders], startMs + 1);
    expect(Object.keys(finish(rows.askedOf(fresh().rows)))).toEqual(['POST /orders']);
  });

  it('of several processes are one', () => {
    const combined = finish(
      combineAsked([
        { a: { lastSeenMs: 5, days: { 1: 2, 2: 1 } }, b: { lastSeenMs: 1, days: { 1: 1 } } },
        { a: { lastSeenMs: 3, days: { 2: 4, 3: 1 } } },
        {},
      ]),
    );
    expect(combined).toEqual({
      a: { lastSeenMs: 5, days: { 1: 2, 2: 5, 3: 1 } },
      b: { lastSeenMs: 1, days: { 1: 1 } },
    });
  });
});

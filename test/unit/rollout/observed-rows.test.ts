import { describe, expect, it } from 'vitest';
import { finish } from '../../../src/lib/slices.ts';
import { type ListedRow, ObservedRows, RowIndex } from '../../../src/rollout/observed-rows.ts';
import { DecisionCounts } from '../../../src/telemetry/decision-counts.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const carts: ListedRow = { method: 'GET', template: '/carts/{id}', scopes: [], observe: true };
const enforced: ListedRow = { method: 'GET', template: '/enforced', scopes: [], observe: false };

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

/** Requests that were let pass, each with its index as its time. */
function passed(...requests: readonly string[]) {
  const counts = new DecisionCounts();
  counts.countsPassed = true;
  for (const [i, request] of requests.entries()) {
    const [method, route] = request.split(' ') as ['GET', string];
    counts.note(exchangeRecord({ method, route }), i);
  }
  return counts.fresh().rows;
}

describe('observed rows', () => {
  const observe = (first: readonly ListedRow[], isObserving = false) => {
    const state = { rows: first, rules: 'rules' };
    const rows = new ObservedRows({
      rows: () => state.rows,
      ...{ isObserving: () => isObserving, rules: () => state.rules },
    });
    return { rows, state };
  };

  it('are all rows, and requests of no row, in observe mode', async () => {
    const { rows } = observe([carts, enforced], true);
    await rows.refresh();
    expect([...rows.rules.keys()]).toEqual(['GET /carts/{id}', 'GET /enforced', '*']);
    expect([...finish(rows.countMet(passed('GET *'))).keys()]).toEqual(['*']);
  });

  it('count the requests of all their methods; those of other rows do not count', async () => {
    const { rows } = observe([carts, enforced]);
    await rows.refresh();
    const requests = passed('GET /enforced', 'GET /elsewhere', 'GET /carts/{id}', 'PUT /carts/{id}', 'GET *');
    expect(Object.fromEntries(finish(rows.countMet(requests)))).toEqual({
      'GET /carts/{id}': {
        ...{ rule: rows.rules.get('GET /carts/{id}'), sinceMs: 2, lastSeenMs: 3, requests: 2 },
      },
    });
  });
});

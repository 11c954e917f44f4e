import { expect, it } from 'vitest';
import { finish } from '../../../src/lib/slices.ts';
import { type ListedRow, ObservedRows, RowIndex } from '../../../src/rollout/observed-rows.ts';
import { DecisionCounts } from '../../../src/telemetry/decision-counts.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const carts: ListedRow = { method: 'GET', template: '/carts/{id}', scopes: [], observe: true };
const enforced: ListedRow = { method: 'GET', template: '/enforced', scopes: [], observe: false };

it('a request counts for the row of its method, else of any method, else the first of its template', () => {
  const index = new RowIndex();
  for (const method of ['PUT', 'ANY', 'GET'] as const) index.add({ method, template: '/a' });
  for (const method of ['PATCH', 'PUT'] as const) index.add({ method, template: '/b' });
  const found = [
    ['GET', '/a'],
    ['POST', '/a'],
    ['POST', '/b'],
    ['PUT', '/b'],
    ['GET', '/c'],
    ['GET', '*'],
  ].map(([method = '', route = '']) => index.find(method, route));
  expect(found).toEqual(['GET /a', 'ANY /a', 'PATCH /b', 'PUT /b', undefined, '*']);
});

it('in observe mode all rows are observed, and requests of no row', async () => {
  const list = [carts, enforced];
  const rows = new ObservedRows({ rows: () => list, isObserving: () => true, rules: () => '' });
  await rows.refresh();
  expect([...rows.rules.keys()]).toEqual(['GET /carts/{id}', 'GET /enforced', '*']);
  const counts = new DecisionCounts();
  counts.countsPassed = true;
  counts.note(exchangeRecord({ route: '*' }), 1);
  expect([...finish(rows.countMet(counts.fresh().rows)).keys()]).toEqual(['*']);
});

import { expect, it } from 'vitest';
import { finish } from '../../../src/lib/slices.ts';
import { type ListedRow, ObservedRows } from '../../../src/rollout/observed-rows.ts';
import { DecisionCounts } from '../../../src/telemetry/decision-counts.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const carts: ListedRow = { method: 'GET', template: '/carts/{id}', scopes: [], observe: true };
const enforced: ListedRow = { method: 'GET', template: '/enforced', scopes: [], observe: false };

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

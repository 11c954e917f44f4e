import { setImmediate as nextIteration } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compileProtectedList } from '../../../src/access/packed-list.ts';
import type { ProtectedResource } from '../../../src/access/protected-list.ts';
import { askEndpoint } from '../../../src/admin/admin-endpoint.ts';
import { createRolloutEndpoint } from '../../../src/admin/rollout-endpoint.ts';
import { RowCounts } from '../../../src/admin/row-counts.ts';
import { createRowListEndpoint } from '../../../src/admin/row-list.ts';
import { finishInSlices } from '../../../src/lib/slices.ts';
import { MemoryCounts } from '../../../src/rollout/memory-counts.ts';
import { makeReport } from '../../../src/rollout/report.ts';
import { Rollout } from '../../../src/rollout/rollout.ts';
import { DecisionCounts, dayMs } from '../../../src/telemetry/decision-counts.ts';
import { exchangeRecord } from '../../unit/admin/exchange-records.ts';
import { WorkCounter } from './work.ts';

/** Many more rows than one slice of two milliseconds reads, also on a fast machine. */
const size = 36_000;
const rows: readonly ProtectedResource[] = Array.from({ length: size }, (_, i) => ({
  method: 'GET',
  template: `/shop-${i % 700}/items-${i}/{id}`,
  group: 'A',
  scopes: [],
  observe: true,
  source: { file: 'list.yaml', line: i + 3, column: 1 },
}));

let counter: WorkCounter;
beforeAll(async () => {
  counter = await WorkCounter.open();
});
afterAll(() => counter.close());

/** The largest share of the work that one tick of the event loop does. Small if the work is done in slices. */
async function shareOfLongestTick(work: () => Promise<unknown>): Promise<number> {
  const ticks: number[] = [];
  let isOver = false;
  await counter.take();
  const done = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await nextIteration();
    ticks.push(await counter.take());
  }
  await done;
  return Math.max(...ticks) / ticks.reduce((sum, one) => sum + one, 0);
}

it('no tick does more than a quarter of the work for a page of the rows of a long list', async () => {
  // A new list, so that work done once per list counts too. Lists are compiled in a worker thread.
  const list = compileProtectedList({ rows }, { ignoredPrefixes: [] });
  const share = await shareOfLongestTick(async () => {
    const endpoint = createRowListEndpoint({
      file: 'list.yaml',
      list: () => list,
      reloads: { lastSuccessMs: 1 },
      counts: new RowCounts(new DecisionCounts()),
    });
    expect(await askEndpoint(endpoint, `q=items-${size - 1}&order=met`)).toMatchObject({ status: 200 });
  });
  expect(share).toBeLessThanOrEqual(0.25);
});

it('no tick does more than a quarter of the work for a page of the roll-out of a long list', async () => {
  const counts = new DecisionCounts({ forRollout: true });
  const rollout = new Rollout({
    counts,
    ...{ store: new MemoryCounts(), intervalMs: dayMs, isObserving: () => true, rules: () => '' },
    rows: () => rows,
    onFault(fault) {
      throw fault;
    },
  });
  await rollout.state();
  for (const { template } of rows) counts.note(exchangeRecord({ route: template }), Date.now());
  const share = await shareOfLongestTick(async () => {
    const endpoint = createRolloutEndpoint(async () =>
      finishInSlices(makeReport(await rollout.state(), rows, true, Date.now())),
    );
    const { body } = await askEndpoint(endpoint, `limit=1&offset=${size - 1}`);
    expect(body).toMatchObject({ found: size + 1, rows: [{ asked: 1 }] });
  });
  expect(share).toBeLessThanOrEqual(0.25);
});

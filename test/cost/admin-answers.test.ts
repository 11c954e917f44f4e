import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { ProtectedResource } from '../../src/access/protected-list.ts';
import { Activity } from '../../src/admin/activity.ts';
import { askEndpoint } from '../../src/admin/admin-endpoint.ts';
import { createRolloutEndpoint } from '../../src/admin/rollout-endpoint.ts';
import { createRowListEndpoint } from '../../src/admin/row-list.ts';
import { finishInSlices } from '../../src/lib/slices.ts';
import { combineStates } from '../../src/rollout/counting.ts';
import { dayMs } from '../../src/rollout/counts.ts';
import { makeReport } from '../../src/rollout/report.ts';
import { Rollout } from '../../src/rollout/rollout.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const rows: readonly ProtectedResource[] = Array.from({ length: 60_000 }, (_, i) => ({
  method: 'GET',
  template: `/shop-${i % 700}/items-${i}/{id}`,
  group: 'A',
  scopes: [],
  observe: true,
  source: { file: 'list.yaml', line: i + 3, column: 1 },
}));

/** Milliseconds of CPU that this thread spends on the work: all together, and in its dearest turn. */
async function turnsOf(work: () => Promise<unknown>): Promise<{ all: number; longest: number }> {
  let [all, longest, isOver] = [0, 0, false];
  let before = process.threadCpuUsage();
  const done = work().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await nextTurn();
    const { user, system } = process.threadCpuUsage(before);
    before = process.threadCpuUsage();
    all += (user + system) / 1000;
    longest = Math.max(longest, (user + system) / 1000);
  }
  await done;
  return { all, longest };
}

/** In one turn at most a quarter of what the whole answer costs; where it is made in slices, it is a tenth or less. */
async function holdsNobodyUp(work: () => Promise<unknown>): Promise<number> {
  let least = 1;
  for (let run = 0; run < 8 && least > 0.25; run++) {
    const { all, longest } = await turnsOf(work);
    least = Math.min(least, longest / all);
  }
  return least;
}

it('a page of the rows of a long list delays no request', { timeout: 120_000 }, async () => {
  const share = await holdsNobodyUp(async () => {
    // A list that is new: what is worked out once of each counts, too.
    const endpoint = createRowListEndpoint({
      file: 'list.yaml',
      rows: () => list,
      reloads: { lastSuccessMs: 1 },
      activity: new Activity(),
    });
    const list = [...rows];
    expect(await askEndpoint(endpoint, 'q=items-59999&order=met')).toMatchObject({ status: 200 });
  });
  expect(share).toBeLessThanOrEqual(0.25);
});

it('a page of the roll-out of a long list delays no request', { timeout: 120_000 }, async () => {
  const rollout = new Rollout({
    ...{ keepMs: 30 * dayMs, intervalMs: dayMs, isObserving: true, rules: '' },
    rows: () => rows,
    store: undefined,
    onFault(fault) {
      throw fault;
    },
  });
  await rollout.state();
  for (const { template } of rows) rollout.note(exchangeRecord({ route: template }), undefined, undefined);
  const share = await holdsNobodyUp(async () => {
    const endpoint = createRolloutEndpoint({
      async report() {
        const counting = await finishInSlices(combineStates([await rollout.state()]));
        return finishInSlices(makeReport(counting, rows, true, Date.now()));
      },
    });
    const { body } = await askEndpoint(endpoint, 'q=items-59999');
    expect(body).toMatchObject({ found: 1, verdicts: { 'not-known': 60_001 }, rows: [{ asked: 1 }] });
  });
  expect(share).toBeLessThanOrEqual(0.25);
});

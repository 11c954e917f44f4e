import { expect, test } from 'vitest';
import { type DrillResult, runDrills } from './drill.ts';
import { drillGroups } from './drills.ts';
import { formatResults } from './report.ts';

/** At once: most of a drill is waiting, and its expectations compare no clock with a number. */
const atOnce = 5;

test('what clients see and whoever is on call is told, in every drill, a few seconds each', {
  timeout: 420_000,
}, async () => {
  const queue = [...drillGroups];
  const results: DrillResult[] = [];
  const work = async () => {
    for (let group = queue.shift(); group !== undefined; group = queue.shift()) {
      results.push(...(await runDrills(group, 'short')));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
  expect(wrongs, formatResults(results)).toEqual([]);
  expect(results).toHaveLength(drillGroups.flatMap(({ drills }) => drills).length);
});

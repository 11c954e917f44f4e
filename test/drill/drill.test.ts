import { expect, test } from 'vitest';
import { type DrillResult, runDrill } from './drill.ts';
import { drills } from './drills.ts';
import { formatResults } from './report.ts';

/** At once: most of a drill is waiting, and its expectations compare no clock with a number. */
const atOnce = 5;

test('what clients see and whoever is on call is told, in every drill, a few seconds each', {
  timeout: 420_000,
}, async () => {
  const queue = [...drills];
  const results: DrillResult[] = [];
  const work = async () => {
    for (let drill = queue.shift(); drill !== undefined; drill = queue.shift()) {
      results.push(await runDrill(drill, 'short'));
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
  expect(wrongs, formatResults(results)).toEqual([]);
  expect(results).toHaveLength(drills.length);
});

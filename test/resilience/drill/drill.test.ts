import { describe, expect, test } from 'vitest';
import { runDrills } from './drill.ts';
import { drillGroups } from './drills.ts';
import { formatResults } from './report.ts';

const rows = drillGroups.map((group) => [group.drills.map(({ name }) => name).join('; '), group] as const);

// As many side by side as Vitest lets run (`maxConcurrency`): most of a drill is waiting, and its expectations compare no
// clock with a number.
describe.concurrent('what clients see and operators are told, a few seconds each', () => {
  test.each(rows)('%s', { timeout: 300_000 }, async (_, group) => {
    const results = await runDrills(group, 'short');
    const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
    expect(wrongs, formatResults(results)).toEqual([]);
    expect(results).toHaveLength(group.drills.length);
  });
});

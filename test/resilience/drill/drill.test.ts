import { describe, expect, test } from 'vitest';
import { runDrills } from './drill.ts';
import { drillGroups } from './drills.ts';
import { formatResults } from './report.ts';

const rows = drillGroups.map((group) => [group.drills.map(({ name }) => name).join('; '), group] as const);

// Vitest runs these concurrently (`maxConcurrency`): most of their time is waiting, and no expectation compares a clock
// with a number.
describe.concurrent('clients see and operators are told only what each outage allows', () => {
  test.each(rows)('%s', { timeout: 300_000 }, async (_, group) => {
    const results = await runDrills(group, 'short');
    const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
    expect(wrongs, formatResults(results)).toEqual([]);
    expect(results).toHaveLength(group.drills.length);
  });
});

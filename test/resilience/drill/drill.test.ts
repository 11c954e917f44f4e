import { describe, expect, test } from 'vitest';
import { runOutages } from './outage.ts';
import { outageGroups } from './outages.ts';
import { rowOf } from './report.ts';

const rows = outageGroups.map((group) => [group.outages.map(({ name }) => name).join('; '), group] as const);

// Vitest runs these concurrently (`maxConcurrency`): most of their time is waiting, and no expectation compares a clock
// with a number.
describe.concurrent('clients see and operators are told only what each outage allows', () => {
  test.each(rows)('%s', { timeout: 300_000 }, async (_, group) => {
    const results = await runOutages(group, 'short');
    const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
    expect(wrongs, JSON.stringify(results.map(rowOf))).toEqual([]);
    expect(results).toHaveLength(group.outages.length);
  });
});

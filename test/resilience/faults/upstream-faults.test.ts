import { expect, test } from 'vitest';
import { formatRows } from './table.ts';
import { runUpstreamFaults } from './upstream-faults.ts';

test('what clients see when the upstream breaks, and that all is well afterwards', {
  timeout: 300_000,
}, async () => {
  const rows = await runUpstreamFaults();
  const wrongs = rows.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
  expect(wrongs, formatRows('the upstream', rows)).toEqual([]);
});

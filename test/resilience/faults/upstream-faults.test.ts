import { expect, test } from 'vitest';
import { runUpstreamFaults } from './upstream-faults.ts';

test('clients see only what a fault of the upstream allows, and all routes work afterwards', {
  timeout: 300_000,
}, async () => {
  const rows = await runUpstreamFaults();
  const wrongs = rows.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
  expect(wrongs, JSON.stringify(rows)).toEqual([]);
});

import { expect, test } from 'vitest';
import { runRedisFaults } from './redis-faults.ts';

test('clients see only what a fault of Redis allows, and all routes work afterwards', {
  timeout: 300_000,
}, async () => {
  const rows = await runRedisFaults();
  const wrongs = rows.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
  expect(wrongs, JSON.stringify(rows)).toEqual([]);
});

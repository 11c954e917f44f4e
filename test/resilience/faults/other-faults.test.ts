import { expect, test } from 'vitest';
import { runClockFaults } from './clock-faults.ts';
import { runKeyFaults } from './key-faults.ts';
import { runLoadFaults } from './load-faults.ts';
import { runLogFaults } from './log-faults.ts';

// Side by side: each has a shop of its own, and none compares a clock with a number.
test.concurrent.each([
  ['the key source', runKeyFaults],
  ['the clock', runClockFaults],
  ['the log', runLogFaults],
  ['the shop or the descriptors, under load', runLoadFaults],
])('what clients see when something is wrong with %s', { timeout: 300_000 }, async (_, run) => {
  expect((await run()).flatMap(({ wrongs }) => wrongs)).toEqual([]);
});

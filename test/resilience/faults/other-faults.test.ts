import { expect, test } from 'vitest';
import { runClockFaults } from './clock-faults.ts';
import { runKeyFaults } from './key-faults.ts';
import { runLoadFaults } from './load-faults.ts';
import { runLogFaults } from './log-faults.ts';

// Concurrent: each has its own shop, and none compares a clock with a number.
test.concurrent.each([
  ['the key source', runKeyFaults],
  ['the clock', runClockFaults],
  ['the log', runLogFaults],
  ['the shop or the descriptors, under load', runLoadFaults],
])('clients see only what a fault of %s allows', { timeout: 300_000 }, async (_, run) => {
  expect((await run()).flatMap(({ wrongs }) => wrongs)).toEqual([]);
});

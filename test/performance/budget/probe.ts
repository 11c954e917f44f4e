/**
 * Loaded into the measured process (`--import`). At each SIGUSR2 it prints one JSON line: the bytes allocated on the heap
 * since the start, and the asynchronous resources of each type since a SIGWINCH. Before it they are not counted, since
 * counting allocates, too.
 *
 * Optimising compilers are off: the allocations that they remove depend on when they run, and the counts must be the same
 * on every machine and at every load.
 */
import { createHook } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

setFlagsFromString('--no-opt');
setFlagsFromString('--no-maglev');
setFlagsFromString('--no-sparkplug');

// Work of long intervals belongs to no request, and a slow machine has more of it between two requests. Shorter intervals
// go on: they show that the event loop runs, and cost nothing.
const { setInterval: every } = globalThis;
globalThis.setInterval = ((act: (...more: unknown[]) => void, ms = 0, ...more: unknown[]) =>
  every(() => {
    if (seq === 0 || ms < 500) act(...more);
  }, ms)) as typeof setInterval;

const begun: Record<string, number> = {};
const hook = createHook({
  init(_id, type) {
    begun[type] = (begun[type] ?? 0) + 1;
  },
});
let seq = 0;
process.on('SIGUSR2', () => {
  const { total_allocated_bytes: bytes } = getHeapStatistics() as unknown as Record<string, number>;
  seq += 1;
  writeSync(1, `${JSON.stringify({ event: 'probe', seq, bytes, begun })}\n`);
});
process.on('SIGWINCH', () => {
  hook.enable();
  writeSync(1, `${JSON.stringify({ event: 'counting' })}\n`);
});

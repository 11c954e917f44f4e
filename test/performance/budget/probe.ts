/**
 * Loaded into the process under measure (`--import`). At each SIGUSR2 it prints one JSON line: bytes that the heap was
 * asked for since the start, and how many asynchronous resources of each type were begun since a SIGWINCH: counting them
 * takes bytes, too.
 *
 * Nothing is compiled with optimisations: what a compiler may leave out depends on when it gets to it, and the counts
 * must be the same on every machine and at every load.
 */
import { createHook } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';

setFlagsFromString('--no-opt');
setFlagsFromString('--no-maglev');
setFlagsFromString('--no-sparkplug');

// What is done every second or so is no request's, and on a slow machine there is more of it between two requests. Shorter
// intervals go on: they tell that the event loop is alive, and cost nothing.
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

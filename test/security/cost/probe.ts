/** Loaded with `--import`: on SIGUSR2 it prints the longest tick since the last signal, as a line of the log. */
import { writeSync } from 'node:fs';

let last = performance.now();
let longest = 0;
let seq = 0;
// A long tick delays the next tick of this timer by its duration.
setInterval(() => {
  const now = performance.now();
  longest = Math.max(longest, now - last - 1);
  last = now;
}, 1).unref();

process.on('SIGUSR2', () => {
  writeSync(1, `${JSON.stringify({ event: 'longest-tick', seq: ++seq, ms: longest })}\n`);
  longest = 0;
});

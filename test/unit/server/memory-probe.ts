/**
 * Loaded into the measured process (`--import`). At each SIGUSR2 it collects the garbage and prints one JSON line: the
 * bytes in use on and off the heap.
 */
import { writeSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
// Compiled code stays: if V8 dropped it during a measurement, that would hide a growth.
setFlagsFromString('--no-flush-bytecode');
const collect = runInNewContext('gc') as () => void;

let seq = 0;
process.on('SIGUSR2', async () => {
  // Memory released in one tick is garbage in the next. The caller asks until the value stops falling.
  for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
  collect();
  const { heapUsed, external } = process.memoryUsage();
  seq += 1;
  writeSync(1, `${JSON.stringify({ event: 'memory', seq, bytes: heapUsed + external })}\n`);
});

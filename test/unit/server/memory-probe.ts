/**
 * Loaded into the process under measure (`--import`). At each SIGUSR2 it prints one JSON line: the bytes in use once
 * the garbage is gone, on the heap and beside it.
 */
import { writeSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
// What was compiled stays: what V8 let go of in the midst of a measurement would hide what is held.
setFlagsFromString('--no-flush-bytecode');
const collect = runInNewContext('gc') as () => void;

let seq = 0;
process.on('SIGUSR2', async () => {
  // What is let go in a turn is garbage in the next one. Once only: whoever asks does so until the answer falls no more.
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
  collect();
  const { heapUsed, external } = process.memoryUsage();
  seq += 1;
  writeSync(1, `${JSON.stringify({ event: 'memory', seq, bytes: heapUsed + external })}\n`);
});

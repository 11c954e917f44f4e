import os from 'node:os';
import type { BenchCase } from '../case.ts';
import type { Stage } from '../stage.ts';

/** Two workers, the upstream and the load generator each want a processor of their own. */
const processors = 4;

/** `workers: 2` beside one: only where the machine can show it. */
export function workerCases(_stage: Stage): BenchCase[] {
  const leftOut = [
    `this machine has ${os.availableParallelism()} processors; workers: 2 needs ${processors}, since upstream and load generator take two`,
  ];
  return [{ name: 'workers', prepare: async () => ({ entries: [], leftOut }) }];
}

import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { readMappingFile } from './read-mapping-file.ts';

// A worker reads one file, transfers the result, and ends.
const { path, settleMs, entityTypes } = workerData as {
  path: string;
  settleMs: number;
  entityTypes: readonly string[];
};
const reading = await readMappingFile(path, () => sleep(settleMs), entityTypes);
parentPort?.postMessage(reading, 'problems' in reading ? [] : [reading.records, reading.slots]);

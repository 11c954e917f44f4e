import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { readMappingFile } from './read-mapping-file.ts';

// A worker reads one file, transfers the result, and ends.
const { path, stableMs, entityTypes } = workerData as {
  path: string;
  stableMs: number;
  entityTypes: readonly string[];
};
const reading = await readMappingFile(path, () => sleep(stableMs), entityTypes);
parentPort?.postMessage(reading, 'problems' in reading ? [] : [reading.records, reading.slots]);

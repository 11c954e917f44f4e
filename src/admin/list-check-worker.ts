import { parentPort, workerData } from 'node:worker_threads';
import { checkList, type ListCheckInput } from './list-check.ts';

// A worker checks one text and ends.
parentPort?.postMessage(checkList(workerData as ListCheckInput));

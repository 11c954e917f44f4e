import { parentPort, workerData } from 'node:worker_threads';
import { checkList, type ListCheckInput } from './list-check.ts';

// The worker's whole life: one text.
parentPort?.postMessage(checkList(workerData as ListCheckInput));

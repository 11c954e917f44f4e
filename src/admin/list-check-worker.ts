import { parentPort, workerData } from 'node:worker_threads';
import { checkList, type ListCheckInput } from './list-check.ts';

// A worker checks one text and ends.
const { input, isTaken } = workerData as { readonly input: ListCheckInput; readonly isTaken: boolean };
const take = isTaken ? (packed: object) => parentPort?.postMessage({ packed }) : undefined;
parentPort?.postMessage({ check: checkList(input, take) });

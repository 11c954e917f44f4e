import { Worker } from 'node:worker_threads';
import type { ListCheck, ListCheckInput } from './list-check.ts';

// A URL is not rewritten when the sources are compiled, so the name follows the one of this file.
const workerFile = new URL(
  import.meta.url.endsWith('.ts') ? './list-check-worker.ts' : './list-check-worker.js',
  import.meta.url,
);

/** `checkList` in a thread of its own, so that no request waits for it. Rejects only when that thread breaks. */
export function checkListInThread(input: ListCheckInput): Promise<ListCheck> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(workerFile, { workerData: input, execArgv: [] });
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`checking a list ended with ${code}`)));
  });
}

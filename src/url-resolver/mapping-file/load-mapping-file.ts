import { Worker } from 'node:worker_threads';
import { MappingTable } from './mapping-table.ts';
import type { FileProblem } from './problem.ts';
import type { FileReading } from './read-mapping-file.ts';

export type LoadedFile =
  | { readonly kind: 'table'; readonly table: MappingTable }
  | { readonly kind: 'problems'; readonly problems: readonly FileProblem[] };

// A URL is not rewritten when the sources are compiled, so the name follows the one of this file.
const workerFile = new URL(
  import.meta.url.endsWith('.ts') ? './mapping-file-worker.ts' : './mapping-file-worker.js',
  import.meta.url,
);

/** Reads a mapping file in a thread of its own. Rejects only when that thread breaks; used by `check` too. */
export function loadMappingFile(path: string, settleMs = 100): Promise<LoadedFile> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(workerFile, { workerData: { path, settleMs }, execArgv: [] });
    worker.once('message', (reading: FileReading) => {
      if (reading.kind === 'table') resolve({ kind: 'table', table: new MappingTable(reading.data) });
      else
        resolve({
          kind: 'problems',
          problems: reading.problems.map((problem) => ({ file: path, ...problem })),
        });
    });
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`reading ${path} ended with ${code}`)));
  });
}

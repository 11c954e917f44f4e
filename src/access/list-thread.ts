import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { PathRules } from '../routes/path-table.ts';
import type { Problem } from '../lib/problem.ts';
import { finishInSlices } from '../lib/slices.ts';
import { compileInSteps, type ProtectedList, type ProtectedResource } from './protected-list.ts';
import type { RenderedDocument } from './published-documents.ts';

export interface ListThreadInput {
  readonly text: string;
  /** Named in problems. */
  readonly file: string;
}

/** Some rows of a list that was parsed in a thread; the last batch also has the rendered document. */
export interface ListBatch {
  readonly rows: readonly ProtectedResource[];
  readonly isLast: boolean;
  /** Undefined: the list must not take effect. */
  readonly rendered?: RenderedDocument | undefined;
  /** The first errors, if the list must not take effect. Warnings are left out, as they would hide the errors. */
  readonly problems?: readonly Problem[];
}

interface CompiledList {
  readonly list: ProtectedList;
  /** For `GET /protected-resources`. */
  readonly rendered: RenderedDocument;
}

// The build rewrites `.ts` in imports, but not in URLs: the extension is this file's own.
const workerFile = new URL(`./list-worker${extname(import.meta.url)}`, import.meta.url);

/**
 * Parses a list in its own thread and compiles it here in slices, so that a long list delays no request. The result is
 * that of `parseProtectedList` and `compileProtectedList`. Rejects only if the thread breaks.
 */
export async function compileListInThread(
  input: ListThreadInput,
  rules: PathRules,
): Promise<CompiledList | { readonly problems: readonly Problem[] }> {
  const worker = new Worker(workerFile, { workerData: input, execArgv: [] });
  worker.unref();
  // Handled where a batch is awaited; between two batches an error must not end the process.
  worker.on('error', () => {});
  const ended = once(worker, 'exit').then(([code]) => {
    throw new Error(`parsing a list ended with ${code}`);
  });
  ended.catch(() => {});
  const rows: ProtectedResource[] = [];
  for (;;) {
    // Batches that were not asked for yet would all be received in one turn.
    worker.postMessage('more');
    const [batch] = (await Promise.race([once(worker, 'message'), ended])) as [ListBatch];
    for (const row of batch.rows) rows.push(Object.freeze(row));
    if (!batch.isLast) continue;
    const { rendered, problems = [] } = batch;
    if (rendered === undefined) return { problems };
    const list = await finishInSlices(compileInSteps({ rows: Object.freeze(rows) }, rules));
    // A Buffer arrives from a thread as a plain Uint8Array.
    const { buffer, byteOffset, byteLength } = rendered.body;
    return { list, rendered: { ...rendered, body: Buffer.from(buffer, byteOffset, byteLength) } };
  }
}

import { Worker } from 'node:worker_threads';
import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { diffProtectedLists, type RouteChange } from '../access/protected-list-review.ts';
import type { Problem } from '../lib/problem.ts';

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

/** A text that may become the list, and the one that it would replace. */
export interface ListCheckInput {
  /** Named in problems. */
  readonly file: string;
  readonly text: string;
  /** Text of the list in force. */
  readonly inForce: string;
}

/** What becomes of a list when the text takes effect; no difference where it cannot. */
export interface ListCheck {
  readonly rows: number;
  readonly problems: readonly Problem[];
  readonly difference:
    | {
        readonly added: readonly DescribedRow[];
        /** `isLooser`: no other row asks their requests for as much. */
        readonly removed: readonly (DescribedRow & { readonly isLooser: boolean })[];
        readonly changed: readonly (Omit<RouteChange, 'before' | 'after'> & {
          readonly before: DescribedRow;
          readonly after: DescribedRow;
        })[];
      }
    | undefined;
}

type DescribedRow = ReturnType<typeof describe>;

/** Pure; a list of 10,000 rows takes some tenths of a second, see `checkListInThread`. */
export function checkList({ file, text, inForce }: ListCheckInput): ListCheck {
  const { list, problems } = parseProtectedList(text, file);
  if (list === undefined) return { rows: 0, problems, difference: undefined };
  const before = parseProtectedList(inForce, file).list ?? { file, rows: [] };
  const { added, removed, changed } = diffProtectedLists(before, list);
  return {
    rows: list.rows.length,
    problems,
    difference: {
      added: added.map(describe),
      removed: removed.map(({ row, isLooser }) => ({ ...describe(row), isLooser })),
      changed: changed.map((change) => ({
        ...change,
        before: describe(change.before),
        after: describe(change.after),
      })),
    },
  };
}

function describe(row: ProtectedResource) {
  const { group, scopes, tokenIn, observe, source } = row;
  return { id: resourceId(row), group, scopes, ...(tokenIn && { tokenIn }), observe, line: source.line };
}

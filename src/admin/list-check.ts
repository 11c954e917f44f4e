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
  /** At most `mostNamed`, errors first where there are more. */
  readonly problems: readonly Problem[];
  /** Of all problems. */
  readonly errors: number;
  readonly difference: NamedDifference | undefined;
}

/** Of each kind at most `mostNamed`, those first that are looser; the numbers are whole. */
interface NamedDifference {
  readonly added: readonly DescribedRow[];
  /** `isLooser`: no other row asks their requests for as much. */
  readonly removed: readonly (DescribedRow & { readonly isLooser: boolean })[];
  readonly changed: readonly (Omit<RouteChange, 'before' | 'after'> & {
    readonly before: DescribedRow;
    readonly after: DescribedRow;
  })[];
  readonly counts: {
    readonly added: number;
    readonly removed: number;
    readonly changed: number;
    /** Of those removed and changed. */
    readonly looser: number;
    /** Of those changed; those added are so, too. */
    readonly stricter: number;
  };
}

/** More than anybody reads; a list of 60,000 rows may be replaced by another one. */
const mostNamed = 500;
/** Of a text, and of scopes: a row may be as long as a list. */
const longestText = 1_000;
const mostScopes = 50;

type DescribedRow = ReturnType<typeof describe>;

/** Pure; a list of 10,000 rows takes some tenths of a second, see `checkListInThread`. */
export function checkList({ file, text, inForce }: ListCheckInput): ListCheck {
  const { list, problems } = parseProtectedList(text, file);
  const errors = problems.filter(({ severity }) => severity === 'error');
  const named = nameFirst(problems, ({ severity }) => severity === 'error').map((problem) => ({
    ...problem,
    text: cutText(problem.text),
  }));
  if (list === undefined) return { rows: 0, problems: named, errors: errors.length, difference: undefined };
  const before = parseProtectedList(inForce, file).list ?? { file, rows: [] };
  const { added, removed, changed } = diffProtectedLists(before, list);
  return {
    rows: list.rows.length,
    problems: named,
    errors: errors.length,
    difference: {
      added: added.slice(0, mostNamed).map(describe),
      removed: nameFirst(removed, isLooser).map((one) => ({ ...describe(one.row), isLooser: one.isLooser })),
      changed: nameFirst(changed, isLooser).map((change) => ({
        ...change,
        before: describe(change.before),
        after: describe(change.after),
      })),
      counts: {
        added: added.length,
        removed: removed.length,
        changed: changed.length,
        looser: [...removed, ...changed].filter(isLooser).length,
        stricter: changed.filter(isStricter).length,
      },
    },
  };
}

const isLooser = (one: { readonly isLooser: boolean }) => one.isLooser;

/** Another group or another name of a parameter asks for neither more nor less. */
function isStricter({ isLooser, what }: RouteChange): boolean {
  return !isLooser && (what.includes('scopes') || what.includes('tokenIn') || what.includes('observe'));
}

/** In their order; where there are too many, those that count come first. */
function nameFirst<One>(all: readonly One[], counts: (one: One) => boolean): readonly One[] {
  if (all.length <= mostNamed) return all;
  const first = all.filter(counts).slice(0, mostNamed);
  const others = all.filter((one) => !counts(one)).slice(0, mostNamed - first.length);
  return [...first, ...others];
}

function cutText(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}

function describe(row: ProtectedResource) {
  const { group, tokenIn, observe, source } = row;
  const scopes = row.scopes.slice(0, mostScopes).map(cutText);
  const about = { id: cutText(resourceId(row)), group: cutText(group), scopes };
  return { ...about, ...(tokenIn && { tokenIn }), observe, line: source.line };
}

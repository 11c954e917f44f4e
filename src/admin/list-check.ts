import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { openPackedList, type PackedList, packList } from '../access/packed-list.ts';
import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { diffProtectedLists, type RouteChange } from '../access/protected-list-review.ts';
import type { ListQuestion } from '../access/watched-list.ts';
import { isolated } from '../lib/faults.ts';
import type { Problem } from '../lib/problem.ts';
import { cutText } from '../lib/text.ts';

// The build rewrites `.ts` in imports, but not in URLs: the extension is this file's own.
const workerFile = new URL(`./list-check-worker${extname(import.meta.url)}`, import.meta.url);

/**
 * Runs `checkList` in a worker thread, so that no request waits for it, and its memory is given back. Rejects only when the
 * thread fails.
 */
export async function checkListInThread(
  input: ListCheckInput,
  take?: (packed: PackedList) => void,
): Promise<ListCheck> {
  const rows = input.text.split('\n').length;
  // A few rows take less time than the start of a thread. A line may have many.
  const isShort = input.text.length < shortText && (input.inForce?.rows.lines.length ?? 0) < fewRows;
  if (isShort) return checkList(input, take);
  // A row takes about 1 KB at the most. Without a limit the heap grows, although most of it is free.
  const limitMb = 64 + Math.ceil(rows / 1_000 + input.text.length / 100_000);
  try {
    return await runThread(input, take, limitMb);
  } catch (fault) {
    // Rows of an unusual form: slower and larger is better than refused.
    if ((fault as NodeJS.ErrnoException).code !== 'ERR_WORKER_OUT_OF_MEMORY') throw fault;
    return runThread(input, take, 8 * limitMb);
  }
}

const fewRows = 300;
const shortText = 20_000;

function runThread(
  input: ListCheckInput,
  take: ((packed: PackedList) => void) | undefined,
  maxOldGenerationSizeMb: number,
): Promise<ListCheck> {
  return new Promise((resolve, reject) => {
    const resourceLimits = { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb };
    const workerData = { input, isTaken: take !== undefined };
    const worker = new Worker(workerFile, { workerData, execArgv: [], resourceLimits });
    type Message = { readonly packed: PackedList } | { readonly check: ListCheck };
    const heed = isolated<Message>(
      (message) => {
        if ('packed' in message) take?.(message.packed);
        else resolve(message.check);
      },
      () => reject(new Error('the answer of the thread could not be used')),
    );
    worker.on('message', heed);
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`checking a list ended with ${code}`)));
  });
}

/** A candidate for the list, and the list that it would replace; undefined: none, and nothing is compared. */
export type ListCheckInput = Omit<ListQuestion, 'inForce'> & { readonly inForce: PackedList | undefined };

/** What the candidate would change. `difference` is undefined where the text is not a list at all. */
export interface ListCheck {
  /** At most `mostNamed`; errors are kept first. */
  readonly problems: readonly Problem[];
  readonly difference: NamedDifference | undefined;
}

/** `isLooser`: less is asked of its requests than before. */
interface NamedRow {
  readonly row: string;
  readonly isLooser: boolean;
}

/** At most `mostNamed` rows of each kind, those that protect less first; `counts` counts all. */
interface NamedDifference {
  readonly added: readonly string[];
  readonly removed: readonly NamedRow[];
  readonly changed: readonly (NamedRow & Pick<RouteChange, 'what'>)[];
  readonly counts: {
    readonly added: number;
    readonly removed: number;
    readonly changed: number;
    /** Of those removed and changed. */
    readonly looser: number;
    /** Of those changed; every added row is stricter, too. */
    readonly stricter: number;
  };
}

/** More than anybody reads; without a bound, one list of 60,000 rows in place of another would name all of them. */
const mostNamed = 500;
/** Characters of a problem, and of the name of a row: a single row may be as long as a whole list. */
const longestText = 1_000;
const longestName = 300;

/**
 * Takes some tenths of a second for 10,000 rows: in the process that serves use `checkListInThread`. `take` gets the compiled
 * list, unless it has errors; without a list in force the problems have warnings, too.
 */
export function checkList(
  { file, text, paths, inForce }: ListCheckInput,
  take?: (packed: PackedList) => void,
): ListCheck {
  const { list, problems } = parseProtectedList(text, file, inForce === undefined);
  if (list !== undefined) take?.(packList(list, paths));
  const named = nameFirst(problems, ({ severity }) => severity === 'error').map((problem) => ({
    ...problem,
    text: cutText(problem.text, longestText),
  }));
  if (list === undefined || inForce === undefined) return { problems: named, difference: undefined };
  const { added, removed, changed } = diffProtectedLists(openPackedList(inForce, file), list);
  return {
    problems: named,
    difference: {
      added: added.slice(0, mostNamed).map(nameOf),
      removed: nameFirst(removed, isLooser).map(({ row, isLooser }) => ({ row: nameOf(row), isLooser })),
      changed: nameFirst(changed, isLooser).map(({ after, what, isLooser }) => ({
        ...{ row: nameOf(after), what, isLooser },
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

/** A changed group or parameter name makes a row neither stricter nor looser. */
function isStricter({ isLooser, what }: RouteChange): boolean {
  return !isLooser && what.some((part) => part !== 'group' && part !== 'template');
}

/** All in their order; where there are more than `mostNamed`, the important ones first. */
function nameFirst<One>(all: readonly One[], isImportant: (one: One) => boolean): readonly One[] {
  if (all.length <= mostNamed) return all;
  return [...all.filter(isImportant), ...all.filter((one) => !isImportant(one))].slice(0, mostNamed);
}

function nameOf(row: ProtectedResource): string {
  return cutText(resourceId(row), longestName);
}

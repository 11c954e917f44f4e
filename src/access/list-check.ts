import { fork } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { coverOfPacked, openRows, type PackedList, packList } from './packed-list.ts';
import { resourceId } from './protected-list.ts';
import { parseProtectedList } from './protected-list-document.ts';
import { differencesOf, type ListDifference } from './protected-list-review.ts';
import { isolated } from '../lib/faults.ts';
import type { Problem } from '../lib/problem.ts';
import { cutText } from '../lib/text.ts';
import type { PathRules } from '../routes/path-table.ts';

/** The text of a list, named by its file. */
export interface ListCheckInput {
  readonly file: string;
  readonly text: string;
  readonly paths: PathRules;
  /** The list that it would replace; undefined: none, and nothing is compared. */
  readonly inForce: Pick<PackedList, 'rows' | 'open'> | undefined;
}

// The build rewrites `.ts` in imports, but not in URLs: the extension is this file's own.
const processFile = new URL(`./list-check-process${extname(import.meta.url)}`, import.meta.url);

/**
 * Checks a list as `checkList` does. A long one is checked by a process of its own, so that no request waits for it and all its
 * memory is given back. Rejects only if that process fails.
 */
export async function checkListAside(
  input: ListCheckInput,
  take: (packed: PackedList) => void,
): Promise<ListCheck> {
  // A few rows take less time than the start of a process. A line may have many.
  const isShort = input.text.length < shortText && (input.inForce?.rows.lines.length ?? 0) < fewRows;
  if (isShort) return checkList(input, take);
  // A row takes about 1 KB, in unusual forms 10. Without a limit the heap grows, although most of it is free.
  let rows = 0;
  for (let at = 0; at >= 0; at = input.text.indexOf('\n', at + 1)) rows += 1;
  const limitMb = 64 + Math.ceil(rows / 1_000 + input.text.length / 100_000);
  return runProcess(input, take, limitMb).catch((fault: unknown) => {
    if (fault !== outOfMemory) throw fault;
    return runProcess(input, take, 8 * limitMb);
  });
}

const fewRows = 300;
const shortText = 20_000;
const outOfMemory = new Error('there is not enough memory to check the list');

/** What the process sends: the compiled list unless it has errors, then what it changes. */
export type ListCheckMessage = { readonly packed: PackedList } | { readonly check: ListCheck };

function runProcess(
  input: ListCheckInput,
  take: (packed: PackedList) => void,
  maxHeapMb: number,
): Promise<ListCheck> {
  return new Promise((resolve, reject) => {
    const child = fork(fileURLToPath(processFile), {
      serialization: 'advanced',
      execArgv: [`--max-old-space-size=${maxHeapMb}`, '--max-semi-space-size=4'],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const heed = isolated<ListCheckMessage>(
      (message) => {
        if ('packed' in message) take(message.packed);
        else resolve(message.check);
      },
      () => reject(new Error('the answer of the process could not be used')),
    );
    child.on('message', heed);
    child.once('error', reject);
    // V8 ends a process without memory by SIGABRT, the kernel by SIGKILL.
    child.once('close', (code, signal) =>
      reject(signal === 'SIGABRT' ? outOfMemory : new Error(`checking a list ended with ${signal ?? code}`)),
    );
    child.send(input, (fault) => fault && reject(fault));
  });
}

/** What the candidate would change. `difference` is undefined where the text is not a list at all. */
export interface ListCheck {
  /** At most `mostNamed`; errors are kept first. */
  readonly problems: readonly Problem[];
  readonly difference: NamedDifference | undefined;
}

interface NamedDifference {
  /** At most `mostNamed`, those that are looser first. */
  readonly rows: readonly ChangedRow[];
  /** Of all rows. `looser`: of those removed and changed; `stricter`: of those changed, as every added row is. */
  readonly counts: Readonly<Record<ListDifference['kind'] | 'looser' | 'stricter', number>>;
}

/** `isLooser`: less is asked of its requests than before. */
interface ChangedRow {
  readonly row: string;
  readonly change: string;
  readonly isLooser: boolean;
}

/** More than anybody reads; without a bound, one list of 60,000 rows in place of another would name all of them. */
const mostNamed = 500;
/** Characters of a problem, and of the name of a row: a single row may be as long as a whole list. */
const longestText = 1_000;
const longestName = 300;

/** `take` gets the compiled list, unless it has errors. It takes some seconds for 60,000 rows. Exported for its tests. */
export function checkList(input: ListCheckInput, take: (packed: PackedList) => void): ListCheck {
  const { problems, packed } = compileList(input);
  if (packed !== undefined) take(packed);
  return { problems, difference: nameDifference(input, packed) };
}

/** Without a list in force the problems have warnings, too. */
export function compileList({ file, text, paths, inForce }: ListCheckInput) {
  const { list, problems } = parseProtectedList(text, file, inForce === undefined);
  const named = nameFirst(problems, ({ severity }) => severity === 'error').map((problem) => ({
    ...problem,
    text: cutText(problem.text, longestText),
  }));
  return { problems: named, packed: list && packList(list, paths) };
}

/** What a compiled list changes in the one in force. */
export function nameDifference(
  { inForce, file }: ListCheckInput,
  packed: PackedList | undefined,
): NamedDifference | undefined {
  if (inForce === undefined || packed === undefined) return undefined;
  const counts = { added: 0, removed: 0, changed: 0, looser: 0, stricter: 0 };
  const looser: ChangedRow[] = [];
  const others: ChangedRow[] = [];
  const [before, after] = [openRows(inForce, file), openRows(packed, file)];
  for (const one of differencesOf(before, after, () => coverOfPacked(packed))) {
    counts[one.kind]++;
    if (one.isLooser) counts.looser++;
    else if (one.kind === 'changed') counts.stricter++;
    const named = one.isLooser ? looser : others;
    if (named.length < mostNamed) named.push(nameChange(one));
  }
  return { rows: [...looser, ...others].slice(0, mostNamed), counts };
}

function nameChange(one: ListDifference): ChangedRow {
  const change = one.kind === 'changed' ? one.what.join(', ') : one.kind;
  return { row: cutText(resourceId(one.row), longestName), change, isLooser: one.isLooser };
}

/** All in their order; where there are more than `mostNamed`, the important ones first. */
function nameFirst<One>(all: readonly One[], isImportant: (one: One) => boolean): readonly One[] {
  if (all.length <= mostNamed) return all;
  return [...all.filter(isImportant), ...all.filter((one) => !isImportant(one))].slice(0, mostNamed);
}

import { fork } from 'node:child_process';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isolated } from '../lib/faults.ts';
import type { Problem } from '../lib/problem.ts';
import { cutText } from '../lib/text.ts';
import type { PathRules } from '../routes/path-table.ts';
import { coverOfPacked, openRows, type PackedList, packList } from './packed-list.ts';
import { resourceId } from './protected-list.ts';
import { parseProtectedList } from './protected-list-document.ts';
import { differencesOf } from './protected-list-review.ts';

export interface ListCheckInput {
  readonly file: string;
  readonly text: string;
  readonly paths: PathRules;
  /** The list that it would replace; undefined: there is none to compare with. */
  readonly inForce: Pick<PackedList, 'rows' | 'open'> | undefined;
}

// The build rewrites `.ts` in imports, but not in URLs, so take the extension of this file.
const processFile = new URL(`./list-check-process${extname(import.meta.url)}`, import.meta.url);

/**
 * Does the same as `checkList`, but checks a long list in a child process, so that no request waits and all its memory is
 * freed. Rejects only if that process fails.
 */
export async function checkListAside(
  input: ListCheckInput,
  take: (packed: PackedList) => void,
): Promise<ListCheck> {
  // Checking a few rows takes less time than starting a process. The length bounds the rows of the new list.
  const isShort = input.text.length < shortText && (input.inForce?.rows.lines.length ?? 0) < fewRows;
  if (isShort) return checkList(input, take);
  // A row takes about 1 KB, an unusual one 10 KB. Without a limit V8 grows the heap instead of collecting garbage.
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

/** The messages of the process: the compiled list unless it has errors, then the result of the check. */
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
    // V8 aborts when its heap is full (SIGABRT); a SIGKILL comes from the kernel, and is not retried.
    child.once('close', (code, signal) =>
      reject(signal === 'SIGABRT' ? outOfMemory : new Error(`checking a list ended with ${signal ?? code}`)),
    );
    child.send(input, (fault) => fault && reject(fault));
  });
}

/** The problems of a list, and what it would change. `difference`: undefined if it has errors, or there is no list in force. */
export interface ListCheck {
  /** At most `mostNamed`; errors are kept first. */
  readonly problems: readonly Problem[];
  readonly difference: ReturnType<typeof nameDifference> | undefined;
}

interface ChangedRow {
  readonly row: string;
  readonly change: string;
  readonly isLooser: boolean;
}

/** More than anyone reads. Without a bound, replacing a list of 60,000 rows would name all of them. */
const mostNamed = 500;
/** Characters of a problem, and of the name of a row: a single row may be as long as a whole list. */
const longestText = 1_000;
const longestName = 300;

/**
 * Passes the compiled list to `take`, unless it has errors, and then compares it with the list in force. Without a list in
 * force it looks for warnings instead. 60,000 rows take some seconds.
 */
export async function checkList(
  { file, text, paths, inForce }: ListCheckInput,
  take: (packed: PackedList) => unknown,
): Promise<ListCheck> {
  const { list, problems } = parseProtectedList(text, file, inForce === undefined);
  const rank = ({ severity }: Problem) => Number(severity !== 'error');
  const all = problems.length > mostNamed ? problems.toSorted((a, b) => rank(a) - rank(b)) : problems;
  const named = all.slice(0, mostNamed).map((one) => ({ ...one, text: cutText(one.text, longestText) }));
  if (list === undefined) return { problems: named, difference: undefined };
  const packed = packList(list, paths);
  await take(packed);
  return { problems: named, difference: inForce && nameDifference(inForce, packed, file) };
}

/** `rows`: at most `mostNamed`, looser ones first. `counts`: of all; `looser`: removed or changed rows that ask for less. */
function nameDifference(inForce: Pick<PackedList, 'rows' | 'open'>, packed: PackedList, file: string) {
  const counts = { added: 0, removed: 0, changed: 0, looser: 0 };
  const looser: ChangedRow[] = [];
  const others: ChangedRow[] = [];
  const [before, after] = [openRows(inForce, file), openRows(packed, file)];
  for (const one of differencesOf(before, after, () => coverOfPacked(packed))) {
    counts[one.kind]++;
    if (one.isLooser) counts.looser++;
    const rows = one.isLooser ? looser : others;
    if (rows.length === mostNamed) continue;
    const row = cutText(resourceId(one.row), longestName);
    rows.push({ row, change: one.what.join(', ') || one.kind, isLooser: one.isLooser });
  }
  return { rows: [...looser, ...others].slice(0, mostNamed), counts };
}

/** Plain rows are cut out of lists longer than this (UTF-16 code units). */
const wholeLength = 20_000;

interface PlainRow {
  readonly text: string;
  readonly line: number;
  readonly column: number;
}

/** A list split into its plain rows and the rest, the frame. */
export type CutList = ReturnType<typeof cutList>;

export const rowsOf = (run: number) => `the rows of run ${run}`;

/** A row that YAML reads literally: it has no character with a meaning in YAML. */
const plain = /^( +)- ([A-Z]+ \/[A-Za-z0-9_{}/.~*-]*)\r?$/;

/**
 * Cuts the plain rows out of a long list, because the parser takes two kilobytes for each. A short list becomes a frame without
 * runs. If the lines were no rows but part of a longer text, the row that replaces them is part of it too: the reader does not
 * find that row and refuses the list.
 */
export function cutList(text: string) {
  const all = text.split('\n');
  // A directive may change how values are read.
  const isCut = text.length > wholeLength && !all.some((line) => line.startsWith('%'));
  /** The list, in which one row, `rowsOf(i)`, replaces the consecutive plain rows `runs[i]`. */
  const frame: string[] = [];
  /** Line of the frame -> line of the list, both from 1. */
  const lines: number[] = [];
  const runs: Iterable<PlainRow>[] = [];
  let isInGroups = false;
  for (let line = 0; line < all.length; line++) {
    const content = all[line] ?? '';
    if (/^[^ #\r]/.test(content)) isInGroups = content.startsWith('groups:');
    const indentation = isCut && isInGroups ? plain.exec(content)?.[1] : undefined;
    lines.push(line + 1);
    if (indentation === undefined) frame.push(content);
    else {
      frame.push(`${indentation}- ${rowsOf(runs.length)}`);
      const end = endOfRun(all, line, indentation);
      runs.push(rowsBetween(all, line, end));
      line = end - 1;
    }
  }
  return { frame: frame.join('\n'), lines, runs };
}

/** Empty lines and comments do not end a run. */
const noContent = /^ *(?:#.*)?\r?$/;

function endOfRun(all: readonly string[], start: number, indentation: string): number {
  let end = start + 1;
  for (; end < all.length; end++) {
    const line = all[end] ?? '';
    if (!noContent.test(line) && plain.exec(line)?.[1] !== indentation) break;
  }
  return end;
}

function* rowsBetween(
  all: readonly string[],
  start: number,
  end: number,
): Generator<PlainRow, void, undefined> {
  for (let line = start; line < end; line++) {
    const [, indentation, text] = plain.exec(all[line] ?? '') ?? [];
    if (indentation !== undefined && text !== undefined)
      yield { text, line: line + 1, column: indentation.length + 3 };
  }
}

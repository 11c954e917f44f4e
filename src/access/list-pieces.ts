/** Lists longer than this, in UTF-16 code units, are read in pieces. */
const wholeLength = 20_000;
/** Lines of one piece: the parser reads them in some milliseconds. */
const pieceLines = 50;

/** Consecutive rows of one group. */
export interface Piece {
  /** A list of its own: a group with these rows and, as its last row, `lastRow`. */
  readonly text: string;
  /** What to add to a line of `text`, to get the line of the whole list. */
  readonly lineOffset: number;
  /** The text of a row that needs no parser, such as `GET /carts`; `text` is not parsed then. */
  readonly plainRow?: { readonly text: string; readonly line: number; readonly column: number };
}

/** A list without its rows, and the rows in pieces. */
export interface CutList {
  /** The list with one row, `rowsOf(i)`, in place of `runs[i]`: the rows that stand together. */
  readonly frame: string;
  /** Line of the frame -> line of the list, both from 1. */
  readonly lines: readonly number[];
  readonly runs: readonly Iterable<Piece>[];
}

export const rowsOf = (run: number) => `the rows of run ${run}`;
/** If a row does not end where the next one begins, it swallows this one. */
export const lastRow = 'the last row';

/**
 * Cuts the rows out of a long list, because the parser takes two kilobytes for each of them. A short one is a frame without runs.
 *
 * Between two rows of a block sequence the state of a YAML parser is its indentation alone. So a list has the same rows as its
 * frame and pieces if every piece ends between two rows, which `lastRow` shows.
 */
export function cutList(text: string): CutList {
  const all = text.split('\n');
  // A directive may change how values are read.
  const isCut = text.length > wholeLength && !all.some((line) => line.startsWith('%'));
  const frame: string[] = [];
  const lines: number[] = [];
  const runs: Iterable<Piece>[] = [];
  let isInGroups = false;
  for (let line = 0; line < all.length; line++) {
    const content = all[line] ?? '';
    if (depthOf(content) === 0) isInGroups = content.startsWith('groups:');
    const indentation = isCut && isInGroups ? itemStart.exec(content)?.[1] : undefined;
    lines.push(line + 1);
    if (indentation === undefined) frame.push(content);
    else {
      frame.push(`${indentation}- ${rowsOf(runs.length)}`);
      const end = endOfRun(all, line, indentation.length);
      runs.push(piecesOf(all, line, end, indentation));
      line = end - 1;
    }
  }
  return { frame: frame.join('\n'), lines, runs };
}

const itemStart = /^( +)- /;

function endOfRun(all: readonly string[], start: number, indentation: number): number {
  let end = start + 1;
  while (end < all.length && belongsTo(all[end] ?? '', indentation)) end++;
  return end;
}

/** Whether a line is within a run of rows of this indentation, or begins another row. */
function belongsTo(line: string, indentation: number): boolean {
  return depthOf(line) > indentation || (depthOf(line) === indentation && line.startsWith('- ', indentation));
}

/** Empty lines and comments belong to whatever is above them. */
function depthOf(line: string): number {
  const depth = line.search(/[^ ]/);
  return depth < 0 || line[depth] === '#' || line[depth] === '\r' ? Number.POSITIVE_INFINITY : depth;
}

/** A row that YAML reads as it stands: no character of it has a meaning there. */
const plain = /^ +- ([A-Z]+ \/[A-Za-z0-9_{}/.~*-]*)\r?$/;

function* piecesOf(
  all: readonly string[],
  start: number,
  end: number,
  indentation: string,
): Generator<Piece, void, undefined> {
  const isStart = (line: number) => line >= end || depthOf(all[line] ?? '') === indentation.length;
  let from = start;
  for (let line = start; line < end; ) {
    let next = line + 1;
    while (!isStart(next)) next++;
    const row = next === line + 1 ? plain.exec(all[line] ?? '')?.[1] : undefined;
    if ((row !== undefined || line - from >= pieceLines) && line > from) {
      yield pieceOf(all, from, line, indentation);
      from = line;
    }
    if (row !== undefined) {
      yield {
        text: '',
        lineOffset: line,
        plainRow: { text: row, line: line + 1, column: indentation.length + 3 },
      };
      from = next;
    }
    line = next;
  }
  if (end > from) yield pieceOf(all, from, end, indentation);
}

function pieceOf(all: readonly string[], from: number, to: number, indentation: string): Piece {
  const header = 'groups:\n A:\n';
  const text = `${header}${all.slice(from, to).join('\n')}\n${indentation}- ${lastRow}\n`;
  return { text, lineOffset: from - 2 };
}

/** Something in a mapping file that has to be mended; lines and columns count from 1, columns in characters. */
export interface FileProblem {
  readonly file: string;
  readonly line: number;
  readonly col: number;
  readonly text: string;
}

/** Where in the file, without its name. */
export type PlacedProblem = Omit<FileProblem, 'file'>;

/** More than these are counted, not listed. */
const longestList = 100;

/** Collects the problems of one reading, all at once but not without end. */
export class ProblemList {
  readonly #problems: PlacedProblem[] = [];
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  add(line: number, col: number, text: string): void {
    this.#count += 1;
    if (this.#problems.length < longestList) this.#problems.push({ line, col, text });
  }

  /** In the order of the file. */
  list(): readonly PlacedProblem[] {
    const sorted = this.#problems.toSorted((a, b) => a.line - b.line || a.col - b.col);
    const left = this.#count - sorted.length;
    const last = sorted.at(-1);
    return left === 0 || last === undefined
      ? sorted
      : [...sorted, { ...last, text: `and ${left} more problems` }];
  }
}

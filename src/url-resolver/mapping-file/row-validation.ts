import type { Problem } from '../../lib/problem.ts';
import { maxUrlBytes } from '../mapping.ts';
import type { ByteRange } from './table.ts';

/** Where in the file, without its name. */
export type PlacedProblem = Omit<Problem, 'file'>;

/** Problems that are listed; the rest is counted. */
const longestList = 100;

/** Collects the problems of one reading. */
export class ProblemList {
  readonly #problems: PlacedProblem[] = [];
  #count = 0;

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  add(line: number, column: number, text: string): void {
    this.#count += 1;
    if (this.#problems.length < longestList) {
      this.#problems.push({ line, column, severity: 'error', text });
    }
  }

  /** In the order of the file. */
  list(): readonly PlacedProblem[] {
    const sorted = this.#problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
    const left = this.#count - sorted.length;
    const last = sorted.at(-1);
    return left === 0 || last === undefined
      ? sorted
      : [...sorted, { ...last, text: `and ${left} more problems` }];
  }
}

export function typeProblem(entityTypes: readonly string[]): string {
  return `entityType must be one of ${entityTypes.join(', ')}`;
}

/** Fewest and most bytes of each text of a row. */
const lengths = { url: [1, maxUrlBytes], entityId: [1, 255], store: [0, 255] } as const;

/** The problem with a text of a row, or undefined. */
export function validateText(
  name: keyof typeof lengths,
  bytes: Uint8Array,
  { start, end }: ByteRange,
): string | undefined {
  const [min, max] = lengths[name];
  if (end - start < min) return `${name} is empty`;
  if (end - start > max) return `${name} is longer than ${max} bytes`;
  for (let i = start; i < end; i += 1) {
    const octet = bytes[i] as number;
    if (octet < 0x20 || octet === 0x7f) return `${name} holds a control character`;
  }
  if (bytes[start] === 0x20 || (end > start && bytes[end - 1] === 0x20))
    return `${name} has spaces around it`;
  return undefined;
}

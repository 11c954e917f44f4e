import { z } from 'zod';
import type { Problem } from '../../lib/problem.ts';
import { maxUrlBytes } from '../mapping.ts';

/** A row of a mapping file; `store` is empty where the row is for every shop store. */
export interface MappingRow {
  readonly url: string;
  readonly entityType: string;
  readonly entityId: string;
  readonly store: string;
}

/** The columns of a row, in the order in which they are documented; the last one may be left out. */
export const columns = ['url', 'entityType', 'entityId', 'store'] as const;

/** The schema of a row, whatever the format of its file. */
export function createRowSchema(entityTypes: readonly string[]) {
  return z.strictObject(
    {
      url: text('url', 1, maxUrlBytes),
      entityType: z.enum(entityTypes, { error: `entityType must be one of ${entityTypes.join(', ')}` }),
      entityId: text('entityId', 1, 255),
      store: text('store', 0, 255).default(''),
    },
    { error: ({ code }) => (code === 'invalid_type' ? 'a row has url, entityType and entityId' : undefined) },
  );
}

function text(name: string, min: number, max: number) {
  const error = ({ input }: { input?: unknown }) =>
    input === undefined ? `${name} is missing` : `${name} must be a string: put it in quotes`;
  return z.string({ error }).check(({ value, issues }) => {
    const problem = findTextProblem(value, min, max);
    if (problem !== undefined) issues.push({ code: 'custom', message: `${name} ${problem}`, input: value });
  });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const controlCharacter = /[\x00-\x1f\x7f]/;

function findTextProblem(value: string, min: number, max: number): string | undefined {
  if (value.length < min) return 'is empty';
  if (value.length > max || Buffer.byteLength(value) > max) return `is longer than ${max} bytes`;
  if (controlCharacter.test(value)) return 'has a control character';
  if (value.startsWith(' ') || value.endsWith(' ')) return 'has spaces around it';
  // A decoder writes U+FFFD for octets that are not UTF-8.
  return value.includes('\ufffd') || !value.isWellFormed() ? 'is not UTF-8' : undefined;
}

/** The problem of one member of a row, or of the row as a whole. */
interface RowProblem {
  readonly key: string | undefined;
  readonly text: string;
}

export function problemsOf({ issues }: z.ZodError): RowProblem[] {
  return issues.flatMap((issue): RowProblem[] => {
    if (issue.code === 'unrecognized_keys')
      return issue.keys.map((key) => ({ key, text: `unknown key ${key}` }));
    const [key] = issue.path;
    return [{ key: key === undefined ? undefined : String(key), text: issue.message }];
  });
}

/** A problem and its position, without the name of the file. */
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

import fc from 'fast-check';
import type { TargetName } from './target-names.ts';

/** A property that is fuzzed. Inputs are JSON, so that a failing one can be kept as data. */
export interface FuzzTarget {
  readonly name: TargetName;
  /** How many inputs a bounded run has. */
  readonly runs: number;
  /** Starts what all inputs share; `close` stops it. */
  open?(): Promise<void>;
  close?(): Promise<void>;
  /** Further figures of a run. */
  figures?(): string;
  /** Throws or rejects if the property fails for the input. */
  check(input: never): void | Promise<void>;
  readonly property: fc.IAsyncProperty<[never]>;
}

export interface Failure {
  readonly input: unknown;
  readonly seed: number;
  readonly path: string;
  readonly error: string;
}

export function fuzzTarget<T>(
  name: TargetName,
  arbitrary: fc.Arbitrary<T>,
  check: (input: T) => void | Promise<void>,
  { runs = 2000, ...life }: Partial<Pick<FuzzTarget, 'runs' | 'open' | 'close' | 'figures'>> = {},
): FuzzTarget {
  const property = fc.asyncProperty(arbitrary, async (input) => check(input));
  return { name, runs, check, property: property as never, ...life };
}

/** The same seed everywhere, so that a failure is due to the change under test; `FUZZ_SEED` replaces it. */
export function committedSeed(): number {
  return Number(process.env.FUZZ_SEED ?? 20_261_121);
}

/**
 * Undefined: no input failed. Otherwise the input is the smallest that the search found, or with `endOnFailure` the first:
 * the search takes hundreds of runs, and a test that times out reports no input.
 */
export async function runTarget(
  { property }: FuzzTarget,
  { numRuns, seed, endOnFailure = false }: { numRuns: number; seed: number; endOnFailure?: boolean },
): Promise<Failure | undefined> {
  const details = await fc.check(property, { numRuns, seed, endOnFailure });
  if (!details.failed) return undefined;
  const { counterexample, counterexamplePath, errorInstance } = details;
  const error = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  return { input: counterexample?.[0], seed, path: counterexamplePath ?? '', error };
}

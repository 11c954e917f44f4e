import fc from 'fast-check';
import type { TargetName } from './target-names.ts';

/** One thing that is fuzzed. Inputs are JSON, so that a failing one can be kept as data. */
export interface FuzzTarget {
  readonly name: TargetName;
  /** Inputs of one bounded run. */
  readonly runs: number;
  /** What is started once for all inputs, and let go. */
  open?(): Promise<void>;
  close?(): Promise<void>;
  /** What else is worth telling of a run. */
  figures?(): string;
  /** Throws, or rejects, where the input breaks what must hold. */
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

/** The same on every machine, so that a red run is about the change at hand; `FUZZ_SEED` takes another. */
export function committedSeed(): number {
  return Number(process.env.FUZZ_SEED ?? 20_261_121);
}

/**
 * Undefined: nothing was found. The input is the smallest that could be found to fail, unless `endOnFailure` asks for the
 * first: to look for a smaller one takes hundreds of runs, and a test that runs out of time says nothing.
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

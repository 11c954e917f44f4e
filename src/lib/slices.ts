import { PerTick } from './per-tick.ts';

/** Long work in small steps: a generator that yields after each step. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps at once. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Milliseconds of long work in one tick of the event loop. */
const sliceMs = 2;
/** All long work together has one slice in each tick: a hundred long answers may arrive in the same one. */
const slices = new PerTick(1);

/** Runs the steps in slices of two milliseconds, one in each tick of the event loop. Rejects with a step's error. */
export async function finishInSlices<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    await new Promise<void>((begin) => slices.run(begin));
    const endMs = performance.now() + sliceMs;
    do {
      const { done, value } = steps.next();
      if (done) return value;
    } while (performance.now() < endMs);
  }
}

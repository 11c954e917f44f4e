import { setImmediate as nextIteration } from 'node:timers/promises';

/** Long work in small steps: a generator that yields after each step. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps at once. Exported for its tests. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Milliseconds of long work in one tick of the event loop. */
const sliceMs = 2;

/** Runs the steps in slices of two milliseconds, with a tick of the event loop in between. Rejects with a step's error. */
export async function finishInSlices<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const endMs = performance.now() + sliceMs;
    do {
      const { done, value } = steps.next();
      if (done) return value;
    } while (performance.now() < endMs);
    await nextIteration();
  }
}

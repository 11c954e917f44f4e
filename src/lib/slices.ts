import { setImmediate as nextTurn } from 'node:timers/promises';

/** Long work as small steps, one for each `next()`. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Does the work at once; for starts and command lines, where nobody waits. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Milliseconds of one turn that long work may have to itself. */
const sliceMs = 2;

/** Does the work two milliseconds a turn, so that it holds up nobody. Rejects with what a step throws. */
export async function finishInSlices<T>(steps: Steps<T>): Promise<T> {
  for (;;) {
    const endMs = performance.now() + sliceMs;
    do {
      const { done, value } = steps.next();
      if (done) return value;
    } while (performance.now() < endMs);
    await nextTurn();
  }
}

import { isolated } from './faults.ts';

/** Grows while this thread makes progress. The watch thread reads it. */
export const heartbeats = new Int32Array(new SharedArrayBuffer(4));

/** Called often within a tick: ten thousand connections can be readable in one, which then takes seconds. */
export function noteProgress(): void {
  Atomics.add(heartbeats, 0, 1);
}

/**
 * Runs tasks in order, and at most `most` of them in one tick of the event loop; the others wait for the next ticks. Without
 * a bound, a crowd of connections that are readable in the same tick would delay timers and all other clients.
 */
export class PerTick {
  readonly #most: number;
  #waiting: (() => void)[] = [];
  /** Index of the first waiting task. */
  #first = 0;
  #ranInTick = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Runs `task` in this call if the tick allows it. Its errors are only reported. */
  run(task: () => void): void {
    noteProgress();
    if (this.#ranInTick >= this.#most) {
      this.#waiting.push(task);
      return;
    }
    if (this.#ranInTick === 0) setImmediate(this.#beginTick);
    this.#ranInTick += 1;
    runIsolated(task);
  }

  readonly #beginTick = (): void => {
    const waiting = this.#waiting;
    const end = Math.min(this.#first + this.#most, waiting.length);
    this.#ranInTick = end - this.#first;
    if (end === this.#first) return;
    setImmediate(this.#beginTick);
    for (; this.#first < end; this.#first += 1) runIsolated(waiting[this.#first] as () => void);
    if (this.#first * 2 < waiting.length) return;
    this.#waiting = waiting.slice(this.#first);
    this.#first = 0;
  };
}

const runIsolated = isolated((task: () => void) => {
  noteProgress();
  task();
});

import { endAlone, isolated, isolateLate } from '../lib/faults.ts';
import { RedisUnavailable } from '../redis/faults.ts';

/** A write that bears repetition. `isLate`: an earlier try got no answer. */
type RetriedWrite = (isLate: boolean) => unknown;

interface RetryQueueOptions {
  /** Milliseconds between two tries. Default 250. Only tests set it. */
  readonly retryMs?: number;
  /** Writes that may wait; one more is lost. Default 10000. */
  readonly limit?: number;
  readonly onDelayed: () => void;
  readonly onLost: () => void;
}

/** How many are tried at once when the store is back. */
const batch = 32;

/** Writes that a store that was away did not take: each is tried again until it does. */
export class RetryQueue {
  readonly #options: RetryQueueOptions;
  readonly #waiting = new Set<RetriedWrite>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: RetryQueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Never rejects with the store's fault; `false`: it waits now, or is lost. */
  async write(write: RetriedWrite): Promise<boolean> {
    const { limit = 10_000, onDelayed, onLost } = this.#options;
    if (await isTaken(write, false)) return true;
    if (this.#waiting.size >= limit) onLost();
    else {
      this.#waiting.add(write);
      onDelayed();
      this.#schedule();
    }
    return false;
  }

  /** Tries what waits, until the first that the store does not take; at once where nothing waits. */
  flush(): Promise<void> | undefined {
    if (this.#waiting.size === 0) return undefined;
    this.#flushing ??= this.#drain().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Tries once more and stops; gives how many are lost. */
  async close(): Promise<number> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.flush();
    return this.#waiting.size;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.size > 0) {
      const writes = [...this.#waiting.values().take(batch)];
      const taken = await Promise.all(writes.map((write) => this.#isDone(write)));
      for (const [i, write] of writes.entries()) if (taken[i]) this.#waiting.delete(write);
      if (taken.includes(false)) return;
    }
  }

  /** One that throws for another reason than the store's would throw every time: it is lost, and the others go on. */
  async #isDone(write: RetriedWrite): Promise<boolean> {
    try {
      return await isTaken(write, true);
    } catch (fault) {
      endAlone(fault, this.#options.onLost);
      return true;
    }
  }

  #schedule(): void {
    if (this.#isClosed || this.#waiting.size === 0) return;
    const tryAgain = isolated(() => {
      this.#timer = undefined;
      const flushed = this.flush();
      if (flushed !== undefined) isolateLate(flushed.then(() => this.#schedule()));
    });
    this.#timer ??= setTimeout(tryAgain, this.#options.retryMs ?? 250).unref();
  }
}

async function isTaken(write: RetriedWrite, isLate: boolean): Promise<boolean> {
  try {
    await write(isLate);
    return true;
  } catch (fault) {
    if (fault instanceof RedisUnavailable) return false;
    throw fault;
  }
}

import { singleFlight } from '../lib/eventually.ts';
import { endAlone, isolated, isolateLate } from '../lib/faults.ts';
import { RedisUnavailable } from '../redis/faults.ts';

/** An idempotent write. `isLate`: an earlier attempt has failed, and may have taken effect. */
type RetriedWrite = (isLate: boolean) => unknown;

interface RetryQueueOptions {
  /** Milliseconds between two attempts. Default 250. Only tests set it. */
  readonly retryMs?: number;
  readonly emit: (event: 'write-delayed' | 'write-lost') => void;
}

/** Writes that may wait; further ones are lost. */
const mostWaiting = 10_000;

/** Writes that are tried at the same time. */
const batch = 32;

/** Repeats writes that failed because the store was away, until it takes them. */
export class RetryQueue {
  readonly #options: RetryQueueOptions;
  readonly #waiting = new Set<RetriedWrite>();
  #timer: NodeJS.Timeout | undefined;
  readonly #drainOnce = singleFlight(() => this.#drain());
  #isClosed = false;

  constructor(options: RetryQueueOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Resolves to whether the store took the write; otherwise it is queued, or lost. Rejects only on a bug. */
  async write(write: RetriedWrite): Promise<boolean> {
    const { retryMs = 250, emit } = this.#options;
    if (await isTaken(write, false)) return true;
    if (this.#waiting.size >= mostWaiting) emit('write-lost');
    else {
      this.#waiting.add(write);
      emit('write-delayed');
      const again = isolated(() => isolateLate(Promise.resolve(this.flush())));
      if (!this.#isClosed) this.#timer ??= setInterval(again, retryMs).unref();
    }
    return false;
  }

  /** Tries the queued writes until the store does not take one; undefined where none is queued. */
  flush(): Promise<void> | undefined {
    return this.#waiting.size === 0 ? undefined : this.#drainOnce();
  }

  /** Tries once more and stops. Resolves to how many writes are lost. */
  async close(): Promise<number> {
    this.#isClosed = true;
    clearInterval(this.#timer);
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
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** A write that fails because of a bug would fail every time: it counts as lost, and the others go on. */
  #isDone(write: RetriedWrite): Promise<boolean> {
    return isTaken(write, true).catch((fault: unknown) => {
      endAlone(fault, () => this.#options.emit('write-lost'));
      return true;
    });
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

import type { Lifetimes } from './cached-mapping.ts';
import { ReadBatch } from './read-batch.ts';
import { readSharedCopy, type SharedCopy, slotOf, writeSharedCopy } from './shared-copy.ts';
import type { SharedMapping } from './shared-mapping.ts';

export interface SharedCacheOptions {
  readonly store: SharedMapping;
  /** Number of slots, the bound of what the store holds. */
  readonly slots: number;
  /** Longest wait for a look-up, in ms. */
  readonly timeoutMs: number;
  readonly lifetimes: Lifetimes;
  readonly now: () => number;
  /** Told when the store goes away, and when it is back. */
  readonly onChange: (isAway: boolean, cause?: unknown) => void;
}

/** While the store is away it is tried once in this time; in between everybody goes on without it at once. */
const pauseMs = 1000;

/** Look-ups in the copies that replicas share: batched, with a deadline, and never a reason to fail. */
export class SharedCache {
  readonly #options: SharedCacheOptions;
  readonly #batch: ReadBatch;
  #awayUntilMs = 0;
  #isAway = false;

  constructor(options: SharedCacheOptions) {
    this.#options = options;
    this.#batch = new ReadBatch((slots) => this.#read(slots));
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** The copy of `key`, or undefined: none, not readable, or the store is away. Never rejects. */
  async get(key: string): Promise<SharedCopy | undefined> {
    if (this.#isPaused()) return undefined;
    try {
      const text = await this.#batch.get(slotOf(key, this.#options.slots));
      return text === null ? undefined : readSharedCopy(key, text);
    } catch {
      return undefined;
    }
  }

  /** Shares a copy, in the background. */
  put(key: string, copy: SharedCopy): void {
    if (this.#isPaused()) return;
    const { lifetimes, slots, store } = this.#options;
    const ttlMs =
      copy.mapping === null
        ? lifetimes.notFoundTtlMs
        : lifetimes.ttlMs + Math.max(lifetimes.staleIfErrorMs, lifetimes.staleWhileRevalidateMs);
    store.write(slotOf(key, slots), writeSharedCopy(key, copy), ttlMs).then(
      () => this.#settle(false),
      (cause) => this.#settle(true, cause),
    );
  }

  async #read(slots: readonly string[]): Promise<readonly (string | null)[]> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_, fail) => {
      timer = setTimeout(() => fail(new Error('no answer in time')), this.#options.timeoutMs);
    });
    try {
      const values = await Promise.race([this.#options.store.read(slots), deadline]);
      this.#settle(false);
      return values;
    } catch (cause) {
      this.#settle(true, cause);
      throw cause;
    } finally {
      clearTimeout(timer);
    }
  }

  #isPaused(): boolean {
    return this.#isAway && this.#options.now() < this.#awayUntilMs;
  }

  #settle(isAway: boolean, cause?: unknown): void {
    if (isAway) this.#awayUntilMs = this.#options.now() + pauseMs;
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    this.#options.onChange(isAway, cause);
  }
}

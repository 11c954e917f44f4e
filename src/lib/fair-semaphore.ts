import { FairQueue, QueueMember } from './fair-queue.ts';

interface FairSemaphoreOptions {
  readonly permits: number;
  /** Permits and waiters of all clients together. */
  readonly capacity: number;
}

/** A permit, or the wait for one. */
export interface Permit {
  /** Resolves to true with the permit, to false after too long a wait; undefined: it was granted at once. */
  readonly granted: Promise<boolean> | undefined;
  /** Gives it back, or ends the wait. To be called once. */
  release(): void;
}

class Waiter extends QueueMember {
  readonly granted = Promise.withResolvers<boolean>();
}

/**
 * Permits for something scarce that clients can keep busy. One client has at most half of the permits and half of the
 * capacity, rounded up. Clients with waiters alternate, so a client without a permit gets one within the time that a permit
 * is used, if fewer other clients than permits have them all.
 */
export class FairSemaphore {
  readonly #permits: number;
  readonly #capacity: number;
  readonly #queue: FairQueue<Waiter>;

  constructor({ permits, capacity }: FairSemaphoreOptions) {
    this.#permits = permits;
    this.#capacity = capacity;
    this.#queue = new FairQueue({ share: Math.ceil(permits / 2), queueShare: capacity });
  }

  /** Whether a client that has no permit waits for one. */
  get isAwaited(): boolean {
    return this.#queue.hasNewWaiter;
  }

  get size(): number {
    return this.#queue.active + this.#queue.waiting;
  }

  /**
   * A permit for this client; undefined: too many wait. `isStrict`: a client that uses and awaits as many as it may use gets
   * no other. `waitMs`: the longest wait.
   */
  acquire(client: string, isStrict: boolean, waitMs: number): Permit | undefined {
    const queue = this.#queue;
    const most = Math.ceil((isStrict ? this.#permits : this.#capacity) / 2);
    const isFull = this.size >= this.#capacity;
    const waiter = new Waiter({ address: client, subject: undefined });
    const isWithinShare = queue.join(waiter);
    if (isFull || queue.sizeOf(waiter) > most) {
      queue.leave(waiter);
      return undefined;
    }
    if (isWithinShare && queue.active < this.#permits) {
      queue.begin(waiter);
      return { granted: undefined, release: () => this.#release(waiter) };
    }
    queue.push(waiter);
    const { promise, resolve } = waiter.granted;
    const timer = setTimeout(() => resolve(false), waitMs);
    return {
      granted: promise,
      release: () => {
        clearTimeout(timer);
        // It may have been granted in the same moment as the wait ended.
        this.#release(waiter);
      },
    };
  }

  #release(waiter: Waiter): void {
    this.#queue.leave(waiter);
    while (this.#queue.active < this.#permits) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      next.granted.resolve(true);
    }
  }
}

import { FairQueue, QueueMember } from './fair-queue.ts';

/** A permit, or a wait for one. */
export interface Permit {
  /** Resolves to true with the permit, or to false if the wait is too long; undefined: the permit was granted at once. */
  readonly granted: Promise<boolean> | undefined;
  /** Returns the permit, or ends the wait. Call it once. */
  release(): void;
}

class Waiter extends QueueMember {
  readonly granted = Promise.withResolvers<boolean>();
}

/**
 * Permits for a scarce resource that clients can keep busy. One client has at most half of the permits and half of the
 * capacity, rounded up. Clients with waiters alternate. If all permits belong to fewer clients than there are permits, a
 * client without one waits no longer than one use takes.
 */
export class FairSemaphore {
  readonly #permits: number;
  readonly #capacity: number;
  readonly #queue: FairQueue<Waiter>;

  /** `capacity`: maximum number of permits and waiters of all clients together. */
  constructor({ permits, capacity }: { readonly permits: number; readonly capacity: number }) {
    this.#permits = permits;
    this.#capacity = capacity;
    this.#queue = new FairQueue({ share: Math.ceil(permits / 2), queueShare: capacity });
  }

  /** Whether a client without a permit waits. */
  get isAwaited(): boolean {
    return this.#queue.hasNewWaiter;
  }

  get size(): number {
    return this.#queue.active + this.#queue.waiting;
  }

  /**
   * Asks for a permit; undefined: there is no room, at all or for this client. `isStrict`: uses and waits of this client
   * together are limited to its share of permits. `waitMs`: the longest wait.
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
        // The permit may have been granted just as the wait ended.
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

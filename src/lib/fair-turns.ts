import { FairQueue, QueueMember } from './fair-queue.ts';

interface FairTurnsOptions {
  /** Turns at one time. */
  readonly turns: number;
  /** Turns and waiters of all clients together. */
  readonly places: number;
}

/** A place among those that have a turn or wait for one. */
export interface Place {
  /** Resolves to true with a turn, to false after too long a wait; undefined: it has a turn already. */
  readonly turn: Promise<boolean> | undefined;
  /** Gives the turn or the place back. To be called once. */
  leave(): void;
}

class Waiter extends QueueMember {
  readonly turn = Promise.withResolvers<boolean>();
}

/**
 * Turns at something scarce that clients can keep busy. One client has at most half of the turns and half of the places,
 * rounded up. Clients with waiters alternate, so a client without a turn gets one within the time that a turn lasts, if
 * fewer other clients than turns have them all.
 */
export class FairTurns {
  readonly #turns: number;
  readonly #places: number;
  readonly #queue: FairQueue<Waiter>;

  constructor({ turns, places }: FairTurnsOptions) {
    this.#turns = turns;
    this.#places = places;
    this.#queue = new FairQueue({ share: Math.ceil(turns / 2), queueShare: places });
  }

  /** Whether a client that has no turn waits for one. */
  get isAwaited(): boolean {
    return this.#queue.hasNewWaiter;
  }

  /** Places that are taken. */
  get size(): number {
    return this.#queue.active + this.#queue.waiting;
  }

  /**
   * A place for one more of this client; undefined: there is none. `isStrict`: a client that has as many places as it
   * may have turns gets no other. `waitMs`: the longest wait for a turn.
   */
  enter(client: string, isStrict: boolean, waitMs: number): Place | undefined {
    const queue = this.#queue;
    const most = Math.ceil((isStrict ? this.#turns : this.#places) / 2);
    const isFull = this.size >= this.#places;
    const waiter = new Waiter({ address: client, subject: undefined });
    const isWithinShare = queue.join(waiter);
    if (isFull || queue.sizeOf(waiter) > most) {
      queue.leave(waiter);
      return undefined;
    }
    if (isWithinShare && queue.active < this.#turns) {
      queue.begin(waiter);
      return { turn: undefined, leave: () => this.#leave(waiter) };
    }
    queue.push(waiter);
    const { promise, resolve } = waiter.turn;
    const timer = setTimeout(() => resolve(false), waitMs);
    return {
      turn: promise,
      leave: () => {
        clearTimeout(timer);
        // The turn may have come in the same moment as the end of the wait.
        this.#leave(waiter);
      },
    };
  }

  #leave(waiter: Waiter): void {
    this.#queue.leave(waiter);
    while (this.#queue.active < this.#turns) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      next.turn.resolve(true);
    }
  }
}

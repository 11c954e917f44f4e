interface FairTurnsOptions {
  /** Turns at one time. */
  readonly turns: number;
  /** Turns and waiters of all clients together. */
  readonly places: number;
}

/** What one client has. */
interface Holder {
  readonly client: string;
  running: number;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
}

/** A place among those that have a turn or wait for one. */
export interface Place {
  /** Resolves to true with a turn, to false after too long a wait; undefined: it has a turn already. */
  readonly turn: Promise<boolean> | undefined;
  /** Gives the turn or the place back. To be called once. */
  leave(): void;
}

/**
 * Turns at something scarce that clients can keep busy, shared so that none of them shuts out the others:
 *
 * - One client has at most half of the turns, rounded up, and half of the places.
 * - A turn that is free goes to the client that has the fewest, and of these to the one that has waited the longest.
 *
 * So a client without a turn gets one within the time that a turn lasts, if fewer other clients than turns have them all. The
 * work for each turn grows with the number of waiting clients, of which there are no more than places.
 */
export class FairTurns {
  readonly #turns: number;
  readonly #places: number;
  /** Clients with a turn or a waiter, the one that was served the longest ago first. */
  readonly #holders = new Map<string, Holder>();
  #running = 0;
  #taken = 0;

  constructor({ turns, places }: FairTurnsOptions) {
    this.#turns = turns;
    this.#places = places;
  }

  /** Turns that one client has at most. */
  get share(): number {
    return Math.ceil(this.#turns / 2);
  }

  /** Places that are taken, and clients that have one. */
  get size(): { readonly places: number; readonly clients: number } {
    return { places: this.#taken, clients: this.#holders.size };
  }

  /** Whether a client that has no turn waits for one. */
  get isAwaited(): boolean {
    return this.#holders.values().some(({ running, waiting }) => running === 0 && waiting.size > 0);
  }

  /**
   * A place for one more of this client; undefined: there is none. `isStrict`: a client that has as many places as it
   * may have turns gets no other. `waitMs`: the longest wait for a turn.
   */
  enter(client: string, isStrict: boolean, waitMs: number): Place | undefined {
    const holder = this.#holders.get(client) ?? { client, running: 0, waiting: new Set() };
    const max = isStrict ? this.share : Math.ceil(this.#places / 2);
    if (this.#taken >= this.#places || holder.running + holder.waiting.size >= max) return undefined;
    this.#taken += 1;
    this.#holders.set(client, holder);
    if (this.#mayRun(holder)) {
      this.#start(holder);
      return { turn: undefined, leave: () => this.#end(holder) };
    }
    return this.#wait(holder, waitMs);
  }

  #wait(holder: Holder, waitMs: number): Place {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), waitMs);
    let hasTurn = false;
    const begin = () => {
      clearTimeout(timer);
      hasTurn = true;
      resolve(true);
    };
    holder.waiting.add(begin);
    return {
      turn: promise,
      leave: () => {
        // The turn may have come in the same moment as the end of the wait.
        if (hasTurn) return this.#end(holder);
        clearTimeout(timer);
        holder.waiting.delete(begin);
        this.#vacate(holder);
      },
    };
  }

  #mayRun({ running }: Holder): boolean {
    return this.#running < this.#turns && running < this.share;
  }

  #start(holder: Holder): void {
    this.#running += 1;
    holder.running += 1;
    // Served last.
    this.#holders.delete(holder.client);
    this.#holders.set(holder.client, holder);
  }

  #end(holder: Holder): void {
    this.#running -= 1;
    holder.running -= 1;
    this.#vacate(holder);
    const next = this.#nextHolder();
    if (next === undefined) return;
    const [begin] = next.waiting;
    if (begin === undefined) return;
    next.waiting.delete(begin);
    this.#start(next);
    begin();
  }

  #vacate(holder: Holder): void {
    this.#taken -= 1;
    if (holder.running + holder.waiting.size === 0) this.#holders.delete(holder.client);
  }

  #nextHolder(): Holder | undefined {
    let next: Holder | undefined;
    for (const holder of this.#holders.values()) {
      if (holder.waiting.size === 0 || !this.#mayRun(holder)) continue;
      if (next === undefined || holder.running < next.running) next = holder;
    }
    return next;
  }
}

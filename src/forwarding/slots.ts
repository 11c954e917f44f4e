export interface SlotsOptions {
  /** Exchanges with the upstream at a time. */
  readonly slots: number;
  /** How many may wait for one. */
  readonly queueLimit: number;
  /** Milliseconds that one may wait. */
  readonly queueTimeoutMs: number;
}

export interface SlotWaiter {
  /** The slot is yours: give it back with `release`. */
  onSlot(): void;
  /** The queue is full, or it took too long. */
  onNoSlot(): void;
}

/** A bounded number of exchanges at a time, and a bounded queue, first come first served, for a bounded time. */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #waiting = new Map<SlotWaiter, NodeJS.Timeout>();
  #taken = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  get taken(): number {
    return this.#taken;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Calls back in this very call if there is a slot, or none to be hoped for. */
  acquire(waiter: SlotWaiter): void {
    if (this.#taken < this.#options.slots) {
      this.#taken += 1;
      waiter.onSlot();
      return;
    }
    if (this.#waiting.size >= this.#options.queueLimit) {
      waiter.onNoSlot();
      return;
    }
    const timer = setTimeout(() => {
      this.#waiting.delete(waiter);
      waiter.onNoSlot();
    }, this.#options.queueTimeoutMs);
    this.#waiting.set(waiter, timer);
  }

  /** Whether `waiter` was still in the queue; it hears nothing more. */
  leave(waiter: SlotWaiter): boolean {
    clearTimeout(this.#waiting.get(waiter));
    return this.#waiting.delete(waiter);
  }

  /** The slot goes to who has waited longest. */
  release(): void {
    if (this.#waiting.size === 0) {
      this.#taken -= 1;
      return;
    }
    for (const [next, timer] of this.#waiting) {
      clearTimeout(timer);
      this.#waiting.delete(next);
      next.onSlot();
      return;
    }
  }
}

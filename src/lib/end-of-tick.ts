import { endAlone } from './faults.ts';

/**
 * Defers work to the end of the current tick of the event loop, after everything that was read in this tick, in order. This
 * is for writes: several in a row cost less than several that each wake up their reader.
 */
export class EndOfTick<T> {
  readonly #run: (item: T) => void;
  readonly #failed: (item: T) => void;
  /** The items of this tick. Two arrays alternate, so that no tick allocates one. */
  #items: (T | undefined)[] = [];
  #spare: (T | undefined)[] = [];
  #count = 0;

  /** If `run` throws on an item, `failed` is called with it and ends its exchange; the other items still run. */
  constructor(run: (item: T) => void, failed: (item: T) => void) {
    this.#run = run;
    this.#failed = failed;
  }

  add(item: T): void {
    this.#items[this.#count] = item;
    this.#count += 1;
    if (this.#count === 1) setImmediate(this.#runAll);
  }

  readonly #runAll = (): void => {
    const items = this.#items;
    const count = this.#count;
    this.#items = this.#spare;
    this.#spare = items;
    this.#count = 0;
    for (let i = 0; i < count; i += 1) {
      const item = items[i] as T;
      items[i] = undefined;
      try {
        this.#run(item);
      } catch (fault) {
        this.#endItem(item, fault);
      }
    }
  };

  #endItem(item: T, fault: unknown): void {
    endAlone(fault, () => this.#failed(item));
  }
}

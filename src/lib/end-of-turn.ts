import { endAlone } from './faults.ts';

/**
 * Work that is put off to the end of the present turn of the event loop, after everything that was read in it, in the
 * order in which it came. Writes belong there: one that follows another costs less than one that wakes its reader up
 * by itself. A turn with one request in it ends at once, so nobody waits for anything but others' work.
 */
export class EndOfTurn<T> {
  readonly #run: (item: T) => void;
  readonly #failed: (item: T) => void;
  /** What waits; two lists take turns, so that no turn makes one. */
  #items: (T | undefined)[] = [];
  #spare: (T | undefined)[] = [];
  #count = 0;

  /** `failed` ends what an item belongs to when `run` throws on it: the items of others are run all the same. */
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

import { endAlone } from './faults.ts';

/**
 * Work that is put off to the end of the present turn of the event loop, behind everything that was read in it, in the
 * order in which it came. Writes belong there: one that follows another costs less than one that wakes its reader up
 * by itself. A turn with one request in it ends at once, so nobody waits for anything but others' work.
 */
export class EndOfTurn<T> {
  readonly #run: (item: T) => void;
  readonly #failed: (item: T) => void;
  #items: T[] = [];

  /** `failed` ends what an item belongs to when `run` throws on it: the items of others are run all the same. */
  constructor(run: (item: T) => void, failed: (item: T) => void) {
    this.#run = run;
    this.#failed = failed;
  }

  add(item: T): void {
    if (this.#items.push(item) === 1) setImmediate(this.#runAll);
  }

  readonly #runAll = (): void => {
    const items = this.#items;
    this.#items = [];
    for (const item of items) {
      try {
        this.#run(item);
      } catch (fault) {
        endAlone(fault, () => this.#failed(item));
      }
    }
  };
}

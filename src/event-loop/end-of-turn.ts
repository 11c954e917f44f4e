/**
 * Work that is put off to the end of the present turn of the event loop, behind everything that was read in it, in the
 * order in which it came. Writes belong there: one that follows another costs less than one that wakes its reader up
 * by itself. A turn with one request in it ends at once, so nobody waits for anything but others' work.
 */
export class EndOfTurn<T> {
  readonly #run: (item: T) => void;
  #items: T[] = [];

  /** `run` must not throw. */
  constructor(run: (item: T) => void) {
    this.#run = run;
  }

  add(item: T): void {
    if (this.#items.push(item) === 1) setImmediate(this.#runAll);
  }

  readonly #runAll = (): void => {
    const items = this.#items;
    this.#items = [];
    for (const item of items) this.#run(item);
  };
}

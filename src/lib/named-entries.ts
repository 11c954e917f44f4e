/** Entries without a user that are always kept. */
const keptEntries = 1_024;

/**
 * One entry for each name that is in use. An entry without a user is kept until as many of them are kept as others are in
 * use: entries that come and go make the Map's table anew each time, and V8 keeps it until it collects the whole heap.
 */
export class NamedEntries<T extends { size: number }> {
  readonly #create: () => T;
  readonly #entries = new Map<string, T>();
  #unused = 0;

  /** `create`: a new entry, with the size 0. */
  constructor(create: () => T) {
    this.#create = create;
  }

  /** How many entries are kept. */
  get size(): number {
    return this.#entries.size;
  }

  /** One more user of this name's entry. */
  enter(name: string): T {
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      entry = this.#create();
      this.#entries.set(name, entry);
    } else if (entry.size === 0) this.#unused -= 1;
    entry.size += 1;
    return entry;
  }

  /** One user fewer. */
  leave(entry: T): void {
    entry.size -= 1;
    if (entry.size > 0) return;
    this.#unused += 1;
    if (this.#unused <= keptEntries || this.#unused * 2 <= this.#entries.size) return;
    for (const [name, one] of this.#entries) if (one.size === 0) this.#entries.delete(name);
    this.#unused = 0;
  }
}

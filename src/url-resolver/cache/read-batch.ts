/** Collects the slots that are asked for in one turn of the event loop and reads them at once, each but once. */
export class ReadBatch {
  readonly #read: (slots: readonly string[]) => Promise<readonly (string | null)[]>;
  #waiting: string[] = [];
  #places = new Map<string, number>();
  #answer: Promise<readonly (string | null)[]> | undefined;

  constructor(read: (slots: readonly string[]) => Promise<readonly (string | null)[]>) {
    this.#read = read;
  }

  /** Rejects when the reading of its batch does. */
  async get(slot: string): Promise<string | null> {
    const place = this.#places.get(slot) ?? this.#waiting.push(slot) - 1;
    this.#places.set(slot, place);
    this.#answer ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#flush());
    return (await this.#answer)[place] ?? null;
  }

  #flush(): Promise<readonly (string | null)[]> {
    const slots = this.#waiting;
    this.#waiting = [];
    this.#places = new Map();
    this.#answer = undefined;
    return this.#read(slots);
  }
}

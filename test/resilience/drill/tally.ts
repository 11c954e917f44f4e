export const kinds = ['read', 'write', 'refresh'] as const;
export type Kind = (typeof kinds)[number];

/** What all clients of a drill saw together. */
export class Tally {
  /** How often each answer was seen: a status, the code of a refusal with it, or `no answer`. */
  readonly seen: Readonly<Record<Kind, Map<string, number>>> = {
    read: new Map(),
    write: new Map(),
    refresh: new Map(),
  };
  /** The longest time in ms from when a client wanted it until it had it, over all tries. */
  readonly longestMs: Record<Kind, number> = { read: 0, write: 0, refresh: 0 };
  /** What a client got by its wish in the end. */
  readonly done: Record<Kind, number> = { read: 0, write: 0, refresh: 0 };
  /** What no client should ever be told. */
  readonly wrongs: string[] = [];
  /** What was done of what was wanted after `breaks`. */
  readonly #doneSince: Record<Kind, number> = { read: 0, write: 0, refresh: 0 };
  #brokenMs = Number.POSITIVE_INFINITY;

  note(kind: Kind, words: string): void {
    this.seen[kind].set(words, (this.seen[kind].get(words) ?? 0) + 1);
  }

  /** Of which kind nothing was wanted after `breaks` and ended well. */
  get missing(): readonly Kind[] {
    return kinds.filter((kind) => this.#doneSince[kind] === 0);
  }

  /** From now on something is broken. */
  breaks(): void {
    this.#brokenMs = performance.now();
  }

  succeed(kind: Kind, wantedMs: number): void {
    this.done[kind] += 1;
    if (wantedMs >= this.#brokenMs) this.#doneSince[kind] += 1;
    this.longestMs[kind] = Math.max(this.longestMs[kind], performance.now() - wantedMs);
  }

  /** `812 x 200, 3 x 503 resource-busy`, the most frequent first. */
  format(kind: Kind): string {
    return [...this.seen[kind]]
      .toSorted(([, a], [, b]) => b - a)
      .map(([words, times]) => `${times} x ${words}`)
      .join(', ');
  }
}

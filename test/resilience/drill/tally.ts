export const kinds = ['read', 'write', 'refresh'] as const;
export type Kind = (typeof kinds)[number];

/** Answers and waits of all clients of an outage. */
export class Tally {
  /** How often each answer was seen: a status, the code of a refusal with it, or `no answer`. */
  readonly seen: Readonly<Record<Kind, Map<string, number>>> = {
    read: new Map(),
    write: new Map(),
    refresh: new Map(),
  };
  /** Longest time in ms until a client had what it wanted, all tries together. */
  readonly longestMs: Record<Kind, number> = { read: 0, write: 0, refresh: 0 };
  /** Number of wishes that succeeded. */
  readonly done: Record<Kind, number> = { read: 0, write: 0, refresh: 0 };
  /** Answers that no client may get, and what else went wrong. */
  readonly wrongs: string[] = [];
  /** Wishes that began after `breaks` and succeeded. */
  readonly #doneSince: Record<Kind, number> = { read: 0, write: 0, refresh: 0 };
  #brokenMs = Number.POSITIVE_INFINITY;

  note(kind: Kind, words: string): void {
    this.seen[kind].set(words, (this.seen[kind].get(words) ?? 0) + 1);
  }

  /** Kinds without a wish that began after `breaks` and succeeded. */
  get missing(): readonly Kind[] {
    return kinds.filter((kind) => this.#doneSince[kind] === 0);
  }

  /** Marks the start of the fault. */
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

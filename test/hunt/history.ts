/** Writes that go through a tag say on which state of the cart they are based; the others promise nothing. */
export type WriteKind = 'patch' | 'delete' | 'child' | 'create';

/** One write as the shop applied it; the shop's list of them is the truth, in order. */
export interface Applied {
  readonly write: string;
  readonly cart: string;
  readonly kind: WriteKind;
  /** The version that its client had read; null where the write needs no tag. */
  readonly basedOn: number | null;
  /** The version that it replaced, and the one that it made. */
  readonly replaced: number;
  readonly result: number;
}

/** What the client of a write was told. `unknown`: nothing, or something that promises nothing (5xx of the shop). */
export type Told = 'accepted' | 'refused' | 'unknown';

export interface Write {
  readonly write: string;
  readonly cart: string;
  readonly kind: WriteKind;
  readonly told: Told;
  /** Version in an accepted answer, where there is one. */
  readonly result: number | undefined;
}

export interface Verdict {
  /** Applied through a tag, on another state than the one that it was based on. */
  readonly lost: readonly Applied[];
  /** The client was told 2xx, and the shop knows nothing of it, or of another result. */
  readonly invented: readonly Write[];
  /** The client was told that nothing was done. */
  readonly appliedThoughRefused: readonly Write[];
  /** One request of a client, applied more than once. */
  readonly appliedTwice: readonly string[];
  readonly unknown: { readonly applied: number; readonly notApplied: number };
}

/** Holds what clients were told against what the shop did. */
export function checkHistory(applied: readonly Applied[], writes: readonly Write[]): Verdict {
  const times = new Map<string, Applied[]>();
  for (const one of applied) {
    const known = times.get(one.write);
    if (known === undefined) times.set(one.write, [one]);
    else known.push(one);
  }
  const wasApplied = ({ write }: Write) => times.has(write);
  const unknown = writes.filter(({ told }) => told === 'unknown');
  return {
    lost: applied.filter(({ basedOn, replaced }) => basedOn !== null && basedOn !== replaced),
    invented: writes.filter(
      ({ told, write, result }) =>
        told === 'accepted' &&
        !times.get(write)?.some((one) => result === undefined || one.result === result),
    ),
    appliedThoughRefused: writes.filter((one) => one.told === 'refused' && wasApplied(one)),
    appliedTwice: [...times].filter(([, all]) => all.length > 1).map(([write]) => write),
    unknown: {
      applied: unknown.filter(wasApplied).length,
      notApplied: unknown.filter((one) => !wasApplied(one)).length,
    },
  };
}

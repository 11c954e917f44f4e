/** Writes that go through a tag say on which state of the cart they are based; the others promise nothing. */
export type WriteKind = 'patch' | 'delete' | 'child' | 'create' | 'collection';

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
  /** When the state changed, by `clockMs`. */
  readonly atMs: number;
}

/** Milliseconds of a clock that all processes of this machine share, and that nobody sets. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** What the client of a write was answered. `unknown`: nothing, or something that promises nothing (5xx of the shop). */
export type Told = 'accepted' | 'refused' | 'unknown';

export interface Write {
  readonly write: string;
  readonly cart: string;
  readonly kind: WriteKind;
  readonly told: Told;
  /** Version in an accepted answer, where there is one. */
  readonly result: number | undefined;
  /** The version that its client had read. */
  readonly basedOn?: number | undefined;
  /** Status of a refusal. */
  readonly status?: number;
  /** When it was told. Undefined: the outcome is unknown. */
  readonly answeredMs?: number;
}

/** A 304: it says that the client's copy was the state of the cart at some moment between question and answer. */
export interface NotModified {
  readonly cart: string;
  readonly version: number;
  readonly askedMs: number;
  readonly answeredMs: number;
}

export interface Verdict {
  /** Applied through a tag, on another state than the one that it was based on. */
  readonly lost: readonly Applied[];
  /** The client was answered 2xx, and the shop knows nothing of it, or of another result. */
  readonly invented: readonly Write[];
  /** The client was answered that nothing was done. */
  readonly appliedThoughRefused: readonly Write[];
  /** One request of a client, applied more than once. */
  readonly appliedTwice: readonly string[];
  /** The copy was the state at no such moment. */
  readonly stale: readonly NotModified[];
  readonly unknown: { readonly applied: number; readonly notApplied: number };
  /** Refused with 412, although the state was still the one that the client had read. */
  readonly needless: number;
}

/** Holds what clients were answered against what the shop did. */
export function checkHistory(
  applied: readonly Applied[],
  writes: readonly Write[],
  notModified: readonly NotModified[],
): Verdict {
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
    stale: findStale(applied, notModified),
    needless: countNeedless(applied, writes),
    unknown: {
      applied: unknown.filter(wasApplied).length,
      notApplied: unknown.filter((one) => !wasApplied(one)).length,
    },
  };
}

function countNeedless(applied: readonly Applied[], writes: readonly Write[]): number {
  const replacedMs = new Map(applied.map(({ cart, replaced, atMs }) => [`${cart} ${replaced}`, atMs]));
  const isNeedless = ({ cart, basedOn, status, answeredMs = 0 }: Write) =>
    status === 412 &&
    basedOn !== undefined &&
    (replacedMs.get(`${cart} ${basedOn}`) ?? Infinity) > answeredMs;
  return writes.filter(isNeedless).length;
}

function findStale(applied: readonly Applied[], notModified: readonly NotModified[]): NotModified[] {
  const key = (cart: string, version: number) => `${cart} ${version}`;
  const madeMs = new Map(applied.map(({ cart, result, atMs }) => [key(cart, result), atMs]));
  const replacedMs = new Map(applied.map(({ cart, replaced, atMs }) => [key(cart, replaced), atMs]));
  return notModified.filter(({ cart, version, askedMs, answeredMs }) => {
    // What nobody made was there from the start; what nobody replaced is there to the end.
    const from = madeMs.get(key(cart, version)) ?? 0;
    const to = replacedMs.get(key(cart, version)) ?? Number.POSITIVE_INFINITY;
    return from > answeredMs || to < askedMs;
  });
}

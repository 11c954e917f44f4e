/** `patch`, `delete` and `collection` send a tag, and the state on which they are based; `child` and `create` do not. */
export type WriteKind = 'patch' | 'delete' | 'child' | 'create' | 'collection';

/** A write that the shop applied. The shop lists them in order. */
export interface Applied {
  readonly write: string;
  readonly cart: string;
  readonly kind: WriteKind;
  /** The version that its client had read; null if the write needs no tag. */
  readonly basedOn: number | null;
  /** The version that it replaced, and the one that it made. */
  readonly replaced: number;
  readonly result: number;
  /** When the state changed, by `clockMs`. */
  readonly atMs: number;
}

/** Milliseconds of the monotonic clock, which all processes of this machine share. */
export function clockMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** What its client was told about a write. `unknown`: no answer, or one that leaves the outcome open (5xx of the shop). */
export type Told = 'accepted' | 'refused' | 'unknown';

export interface Write {
  readonly write: string;
  readonly cart: string;
  readonly kind: WriteKind;
  readonly told: Told;
  /** The version in an accepted answer, if it has one. */
  readonly result: number | undefined;
  /** The version that its client had read. */
  readonly basedOn?: number | undefined;
  /** Status of a refusal. */
  readonly status?: number;
  /** Time of the answer. Undefined: the outcome is unknown. */
  readonly answeredMs?: number;
}

/** A 304. It promises that the client's copy was current at some moment between request and answer. */
export interface NotModified {
  readonly cart: string;
  readonly version: number;
  readonly askedMs: number;
  readonly answeredMs: number;
}

export interface Verdict {
  /** Writes with a tag that replaced another state than the one that they were based on. */
  readonly lost: readonly Applied[];
  /** Writes answered 2xx that the shop has not applied, or with another result. */
  readonly invented: readonly Write[];
  /** Writes that were refused, but applied. */
  readonly appliedThoughRefused: readonly Write[];
  /** Writes that were applied more than once. */
  readonly appliedTwice: readonly string[];
  /** 304 answers for a copy that was current at no moment between request and answer. */
  readonly stale: readonly NotModified[];
  readonly unknown: { readonly applied: number; readonly notApplied: number };
  /** Number of writes refused with 412 although the state that the client had read was still current. */
  readonly needless: number;
}

/** Compares the answers to clients with what the shop did. */
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
    // A version without a write is from the start; one that was not replaced lasts to the end.
    const from = madeMs.get(key(cart, version)) ?? 0;
    const to = replacedMs.get(key(cart, version)) ?? Number.POSITIVE_INFINITY;
    return from > answeredMs || to < askedMs;
  });
}

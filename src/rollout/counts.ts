import type { RejectionName } from '../http/rejection.ts';

/** Limits of what is kept, here and in the store, so that no client can make it grow. */
export const bounds = {
  /** Pairs of row and reason. */
  entries: 500,
  /** Clients that are counted separately for each of them. */
  clients: 100,
  /** Clients of all entries together that one process holds until they are written. */
  waitingClients: 5_000,
  /** Characters of a `User-Agent` that are kept. */
  userAgent: 100,
  /** Hours that are counted separately; older requests count by day. */
  hours: 48,
} as const;

export const hourMs = 3_600_000;
export const dayMs = 24 * hourMs;

/** A refusal that was enforced, or only observed. */
export interface Refusal {
  /** `observed`: the request was forwarded. */
  readonly kind: 'observed' | 'refused';
  readonly method: string;
  /** Template of the deciding row; `*`: none. */
  readonly route: string;
  readonly reason: RejectionName;
}

/** The sender, in the form in which it may be kept. */
export interface RolloutClient {
  /** Distinguishes clients; shown as it is. */
  readonly client: string;
  readonly userAgent: string;
}

interface ClientCount {
  readonly client: string;
  readonly userAgent: string;
  readonly requests: number;
  readonly lastSeenMs: number;
}

/** Requests of one row and reason. Times in milliseconds since the epoch. */
export interface RolloutEntry extends Refusal {
  readonly requests: number;
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  /** Number of the hour, or of the day, since the epoch -> requests. */
  readonly hours: Readonly<Record<string, number>>;
  readonly days: Readonly<Record<string, number>>;
  /** Those with most requests first. */
  readonly clients: readonly ClientCount[];
  /** Requests of further clients, beyond those in `clients`. */
  readonly beyond: number;
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

interface Growing extends Mutable<Pick<RolloutEntry, 'requests' | 'sinceMs' | 'lastSeenMs' | 'beyond'>> {
  readonly refusal: Refusal;
  readonly hours: Map<number, number>;
  readonly days: Map<number, number>;
  readonly clients: Map<string, Mutable<ClientCount>>;
}

export function entryKey({ kind, method, route, reason }: Refusal): string {
  return `${kind} ${reason} ${method} ${route}`;
}

/** Counts in the memory of this process, within `bounds`. */
export class RolloutCounts {
  readonly #keepDays: number;
  readonly #entries = new Map<string, Growing>();
  #clients = 0;
  /** When a row and reason was first left out because there were too many; undefined: none was. */
  leftOutSinceMs: number | undefined;

  constructor(keepMs: number) {
    this.#keepDays = Math.ceil(keepMs / dayMs);
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** `client` undefined: clients are not kept. */
  note(refusal: Refusal, client: RolloutClient | undefined, nowMs: number): void {
    const entry = this.#entryOf(refusal, nowMs);
    if (entry === undefined) return;
    entry.requests++;
    if (nowMs > entry.lastSeenMs) entry.lastSeenMs = nowMs;
    if (nowMs < entry.sinceMs) entry.sinceMs = nowMs;
    this.#addToBuckets(entry, nowMs);
    if (client !== undefined) this.#addClient(entry, client, nowMs);
  }

  /** `show`: how a client is named to others. */
  entries(show: (client: string) => string = (client) => client): RolloutEntry[] {
    return [...this.#entries.values()].map(({ refusal, clients, hours, days, ...entry }) => ({
      ...refusal,
      ...entry,
      hours: Object.fromEntries(hours),
      days: Object.fromEntries(days),
      clients: [...clients.values()].map((one) => ({ ...one, client: show(one.client) })).sort(byRequests),
    }));
  }

  #entryOf(refusal: Refusal, nowMs: number): Growing | undefined {
    const key = entryKey(refusal);
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    if (this.#entries.size >= bounds.entries) {
      this.leftOutSinceMs ??= nowMs;
      return undefined;
    }
    const times = { sinceMs: nowMs, lastSeenMs: nowMs, hours: new Map(), days: new Map() };
    const entry: Growing = { refusal, requests: 0, ...times, clients: new Map(), beyond: 0 };
    this.#entries.set(key, entry);
    return entry;
  }

  #addToBuckets({ hours, days, lastSeenMs }: Growing, nowMs: number): void {
    const [hour, day] = [Math.floor(nowMs / hourMs), Math.floor(nowMs / dayMs)];
    const isNew = !hours.has(hour);
    hours.set(hour, (hours.get(hour) ?? 0) + 1);
    days.set(day, (days.get(day) ?? 0) + 1);
    if (!isNew) return;
    forgetBefore(hours, Math.floor(lastSeenMs / hourMs) - bounds.hours);
    forgetBefore(days, Math.floor(lastSeenMs / dayMs) - this.#keepDays);
  }

  #addClient(entry: Growing, { client, userAgent }: RolloutClient, nowMs: number): void {
    const key = `${client}\n${userAgent}`;
    const known = entry.clients.get(key);
    if (known !== undefined) {
      known.requests++;
      if (nowMs > known.lastSeenMs) known.lastSeenMs = nowMs;
    } else if (entry.clients.size >= bounds.clients || this.#clients >= bounds.waitingClients) {
      entry.beyond++;
    } else {
      this.#clients++;
      entry.clients.set(key, { client, userAgent, requests: 1, lastSeenMs: nowMs });
    }
  }
}

function forgetBefore(buckets: Map<number, number>, first: number): void {
  for (const bucket of buckets.keys()) if (bucket < first) buckets.delete(bucket);
}

function byRequests(a: { readonly requests: number }, b: { readonly requests: number }): number {
  return b.requests - a.requests;
}

/** Adds up the entries of several processes, or those of the store and those that are not written yet. */
export function combineEntries(lists: readonly (readonly RolloutEntry[])[]): RolloutEntry[] {
  const combined = new Map<string, RolloutEntry>();
  for (const entry of lists.flat()) {
    const key = entryKey(entry);
    const known = combined.get(key);
    combined.set(key, known === undefined ? entry : addEntries(known, entry));
  }
  return [...combined.values()].sort(byRequests);
}

function addEntries(a: RolloutEntry, b: RolloutEntry): RolloutEntry {
  const clients = new Map<string, ClientCount>();
  for (const one of [...a.clients, ...b.clients]) {
    const key = `${one.client}\n${one.userAgent}`;
    const { requests = 0, lastSeenMs = 0 } = clients.get(key) ?? {};
    const latestMs = Math.max(lastSeenMs, one.lastSeenMs);
    clients.set(key, { ...one, requests: requests + one.requests, lastSeenMs: latestMs });
  }
  return {
    ...a,
    requests: a.requests + b.requests,
    sinceMs: Math.min(a.sinceMs, b.sinceMs),
    lastSeenMs: Math.max(a.lastSeenMs, b.lastSeenMs),
    hours: addBuckets(a.hours, b.hours),
    days: addBuckets(a.days, b.days),
    clients: [...clients.values()].sort(byRequests),
    beyond: a.beyond + b.beyond,
  };
}

export function addBuckets(a: RolloutEntry['hours'], b: RolloutEntry['hours']): Record<string, number> {
  const sums = { ...a };
  for (const [bucket, requests] of Object.entries(b)) sums[bucket] = (sums[bucket] ?? 0) + requests;
  return sums;
}

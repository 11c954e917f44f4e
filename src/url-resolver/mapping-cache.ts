import { withinTime } from '../lib/eventually.ts';
import { isolateLate } from '../lib/faults.ts';
import type { Mapping } from './envelope.ts';
import {
  type CachedMapping,
  cacheMapping,
  freshUntilMs,
  isFound,
  type Lifetimes,
  type LocalCache,
  staleUntilMs,
  usableUntilMs,
} from './local-cache.ts';
import type { ResolverCounts } from './options.ts';
import type { Partition } from './partition.ts';
import type { PurgeFollower, PurgeHistory } from './purge-history.ts';
import type { Position } from './purge-log.ts';
import { cacheStatus, type Provenance } from './response.ts';
import type { SharedCache } from './shared-cache.ts';
import { fail, type LookupFailure, type LookupOutcome, type UpstreamSource } from './source.ts';

/** A lookup: a URL in a partition. */
interface MappingQuery {
  readonly url: string;
  readonly partition: Partition;
  /** From `mappingKey`; undefined: asked uncached. */
  readonly key: string | undefined;
}

/** The result of a lookup, ready to be written. */
export type MappingResult =
  | {
      readonly kind: 'known';
      readonly mapping: Mapping;
      readonly tag: string;
      readonly provenance: Provenance;
    }
  | { readonly kind: 'unknown'; readonly provenance: Provenance }
  | { readonly kind: 'missing' }
  | LookupFailure;

interface MappingCacheOptions {
  readonly local: LocalCache;
  readonly shared: SharedCache | undefined;
  readonly source: UpstreamSource;
  readonly follower: PurgeFollower;
  readonly lifetimes: Lifetimes;
  /** Longest wait for the source where there is a stale copy. */
  readonly staleWaitMs: number;
  readonly tagOf: (mapping: Mapping, locale: string) => string;
  readonly counts: ResolverCounts;
  readonly onFailure: (failure: LookupFailure) => void;
  readonly now: () => number;
}

/** After a failure, while there is a stale copy, the source is not asked again about the same key for this time. */
const retryAfterMs = 5000;

interface Filled {
  readonly outcome: LookupOutcome;
  /** What was kept of it. */
  readonly entry: CachedMapping | undefined;
}

/** The mapping cache: first this process, then the shared copies, then the source, one lookup at a time for each key. */
export class MappingCache {
  readonly #options: MappingCacheOptions;
  readonly #lookups: SingleFlight<Filled>;

  constructor(options: MappingCacheOptions) {
    this.#options = options;
    this.#lookups = new SingleFlight(options.follower.history);
  }

  get keysUnderWay(): number {
    return this.#lookups.size;
  }

  /** Without a promise when this process has a usable copy. Never rejects. */
  find(lookup: MappingQuery): MappingResult | Promise<MappingResult> {
    const { local, lifetimes, counts, now } = this.#options;
    const { key } = lookup;
    if (key === undefined) return this.#findUncached(lookup);
    const entry = local.get(key, lookup.url);
    if (entry === undefined) return this.#findElsewhere(lookup, key);
    const nowMs = now();
    if (nowMs >= freshUntilMs(entry, lifetimes)) return this.#findStale(lookup, key, entry, nowMs);
    if (isFound(entry)) counts.hits += 1;
    else counts.notFoundHits += 1;
    const ttl = this.#secondsLeft(entry, nowMs);
    return resultOf(entry, cacheStatus.hit(ttl), ttl);
  }

  async #findUncached(lookup: MappingQuery): Promise<MappingResult> {
    this.#options.counts.bypasses += 1;
    const outcome = await this.#ask(lookup);
    return this.#unkept(outcome, lookup, cacheStatus.notStored('bypass', false));
  }

  async #findElsewhere(lookup: MappingQuery, key: string): Promise<MappingResult> {
    const { shared, local, lifetimes, now } = this.#options;
    if (shared !== undefined && this.#lookups.find(key, lookup.url) === undefined) {
      const entry = await this.#readShared(shared, lookup, key);
      const nowMs = now();
      if (entry !== undefined) {
        const ttl = this.#secondsLeft(entry, nowMs);
        if (nowMs >= freshUntilMs(entry, lifetimes)) return this.#findStale(lookup, key, entry, nowMs);
        this.#options.counts.sharedHits += 1;
        return resultOf(entry, cacheStatus.shared(ttl), ttl);
      }
      // Another request may have filled it meanwhile.
      if (local.get(key, lookup.url) !== undefined) return this.find(lookup);
    }
    return this.#findAtSource(lookup, key, undefined);
  }

  /** The shared copy as an entry of this process; undefined: there is none, it is too old, or a purge covers it. */
  async #readShared(
    shared: SharedCache,
    lookup: MappingQuery,
    key: string,
  ): Promise<CachedMapping | undefined> {
    const { follower, lifetimes, local, now } = this.#options;
    const copy = await shared.get(key);
    if (copy === undefined) return undefined;
    if (!follower.history.accepts(copy.stamp, lookup.url)) {
      // The replica that wrote it has read more of the log than this process.
      if (copy.stamp.seq > follower.history.position.seq) isolateLate(follower.catchUp());
      return undefined;
    }
    const nowMs = now();
    const storedAtMs = Math.min(copy.storedAtMs, nowMs);
    const entry = cacheMapping(copy.mapping, this.#tag(copy.mapping, lookup), storedAtMs, copy.stamp.seq);
    const known = local.get(key, lookup.url);
    if (known !== undefined && freshUntilMs(known, lifetimes) >= freshUntilMs(entry, lifetimes))
      return undefined;
    if (nowMs >= Math.max(staleUntilMs(entry, lifetimes), usableUntilMs(entry, lifetimes))) return undefined;
    local.set(key, entry);
    return entry;
  }

  #findStale(
    lookup: MappingQuery,
    key: string,
    entry: CachedMapping,
    nowMs: number,
  ): MappingResult | Promise<MappingResult> {
    const { lifetimes } = this.#options;
    const isUsable = nowMs < usableUntilMs(entry, lifetimes);
    if (nowMs < staleUntilMs(entry, lifetimes)) {
      if (nowMs >= entry.retryAtMs) void this.#refresh(lookup, key, entry);
      return this.#stale(entry, 'revalidating');
    }
    if (isUsable && nowMs < entry.retryAtMs) return this.#stale(entry, 'error');
    return this.#findAtSource(lookup, key, entry);
  }

  async #refresh(lookup: MappingQuery, key: string, entry: CachedMapping): Promise<void> {
    if (this.#options.source.isFull || this.#lookups.find(key, lookup.url) !== undefined) return;
    const { outcome } = await this.#fill(lookup, key).outcome;
    if (outcome.kind === 'failed') entry.retryAtMs = this.#options.now() + retryAfterMs;
  }

  async #findAtSource(
    lookup: MappingQuery,
    key: string,
    stale: CachedMapping | undefined,
  ): Promise<MappingResult> {
    const { counts, lifetimes, now } = this.#options;
    counts.misses += 1;
    const joined = this.#lookups.find(key, lookup.url);
    if (joined !== undefined) counts.collapsed += 1;
    const flight = joined ?? this.#fill(lookup, key);
    const isUsable = stale !== undefined && now() < usableUntilMs(stale, lifetimes);
    const { outcome, entry } = await (isUsable
      ? withinTime(flight.outcome, this.#options.staleWaitMs, lateOutcome)
      : flight.outcome);
    if (outcome.kind === 'failed' && isUsable) {
      stale.retryAtMs = now() + retryAfterMs;
      // It is gone if a purge came meanwhile.
      if (this.#options.local.get(key, lookup.url) === stale) return this.#stale(stale, 'error');
    }
    const fwd = stale === undefined ? 'miss' : 'stale';
    const isCollapsed = joined !== undefined;
    if (entry === undefined) return this.#unkept(outcome, lookup, cacheStatus.notStored(fwd, isCollapsed));
    const ttl = this.#secondsLeft(entry, now());
    return resultOf(entry, cacheStatus.stored(fwd, ttl, isCollapsed), ttl);
  }

  #fill(lookup: MappingQuery, key: string) {
    return this.#lookups.start(key, async (stamp): Promise<Filled> => {
      const outcome = await this.#ask(lookup);
      return { outcome, entry: this.#keep(outcome, lookup, key, stamp) };
    });
  }

  async #ask(lookup: MappingQuery): Promise<LookupOutcome> {
    const { counts, onFailure, source } = this.#options;
    counts.lookups += 1;
    const outcome = await source.ask(lookup.url, lookup.partition);
    if (outcome.kind === 'failed') {
      counts.failures += 1;
      onFailure(outcome);
    }
    return outcome;
  }

  #keep(
    outcome: LookupOutcome,
    lookup: MappingQuery,
    key: string,
    stamp: Position,
  ): CachedMapping | undefined {
    const { follower, local, shared, counts, now } = this.#options;
    if (outcome.kind !== 'found' && outcome.kind !== 'unknown') return undefined;
    if (!outcome.keep || !follower.history.accepts(stamp, lookup.url)) {
      counts.notKept += 1;
      return undefined;
    }
    const mapping = outcome.kind === 'found' ? outcome.mapping : null;
    const storedAtMs = now();
    const entry = cacheMapping(mapping, this.#tag(mapping, lookup), storedAtMs, stamp.seq);
    local.set(key, entry);
    shared?.put(key, { mapping, storedAtMs, stamp });
    return entry;
  }

  #unkept(outcome: LookupOutcome, lookup: MappingQuery, status: string): MappingResult {
    const provenance = { cacheStatus: status, maxAgeSeconds: 0 };
    if (outcome.kind === 'unknown') return { kind: 'unknown', provenance };
    if (outcome.kind !== 'found') return outcome;
    const { mapping } = outcome;
    return { kind: 'known', mapping, tag: this.#tag(mapping, lookup), provenance };
  }

  #stale(entry: CachedMapping, why: 'revalidating' | 'error'): MappingResult {
    this.#options.counts.staleHits += 1;
    return resultOf(entry, cacheStatus.stale(this.#secondsLeft(entry, this.#options.now()), why), 0);
  }

  #tag(mapping: Mapping | null, lookup: MappingQuery): string {
    return mapping === null ? '' : this.#options.tagOf(mapping, lookup.partition.locale);
  }

  #secondsLeft(entry: CachedMapping, nowMs: number): number {
    return Math.floor((freshUntilMs(entry, this.#options.lifetimes) - nowMs) / 1000);
  }
}

function lateOutcome(): Filled {
  return { outcome: fail('timeout', 'timeout'), entry: undefined };
}

function resultOf(entry: CachedMapping, status: string, maxAgeSeconds: number): MappingResult {
  const provenance = { cacheStatus: status, maxAgeSeconds };
  if (!isFound(entry)) return { kind: 'unknown', provenance };
  return { kind: 'known', mapping: entry, tag: entry.tag, provenance };
}

/** A lookup under way, shared by all requests for the same key. */
interface InFlight<T> {
  /** Where the purge log stood before the source was asked. */
  readonly stamp: Position;
  readonly outcome: Promise<T>;
}

/** One lookup at a time for each key. It belongs to no client, so a client that leaves does not end it. */
class SingleFlight<T> {
  readonly #underWay = new Map<string, InFlight<T>>();
  readonly #history: PurgeHistory;

  constructor(history: PurgeHistory) {
    this.#history = history;
  }

  get size(): number {
    return this.#underWay.size;
  }

  /** The lookup of `key` that may be joined: not one that began before a purge of its URL. */
  find(key: string, url: string): InFlight<T> | undefined {
    const flight = this.#underWay.get(key);
    return flight !== undefined && this.#history.accepts(flight.stamp, url) ? flight : undefined;
  }

  /** Starts `ask`, which must not reject, with the current position of the purge log. */
  start(key: string, ask: (stamp: Position) => Promise<T>): InFlight<T> {
    const stamp = this.#history.position;
    const flight: InFlight<T> = { stamp, outcome: ask(stamp) };
    this.#underWay.set(key, flight);
    const forgotten = flight.outcome.finally(() => {
      if (this.#underWay.get(key) === flight) this.#underWay.delete(key);
    });
    isolateLate(forgotten);
    return flight;
  }
}

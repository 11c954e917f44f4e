import {
  type CachedMapping,
  cacheMapping,
  freshUntilMs,
  isFound,
  type Lifetimes,
  staleUntilMs,
  usableUntilMs,
} from './cache/cached-mapping.ts';
import type { LocalCache } from './cache/local-cache.ts';
import type { SharedCache } from './cache/shared-cache.ts';
import { Flights } from './flights.ts';
import type { Lookup, LookupResult } from './lookup.ts';
import type { Mapping } from './mapping.ts';
import type { Position } from './purge/purge.ts';
import type { PurgeFollower } from './purge/purge-follower.ts';
import type { ResolverCounts } from './resolver-stats.ts';
import { cacheStatus } from './response/cache-status.ts';
import type { UpstreamSource } from './sources/upstream-source.ts';
import { fail, type SourceFailure, type Verdict } from './sources/verdict.ts';

export interface MappingCacheOptions {
  readonly local: LocalCache;
  readonly shared: SharedCache | undefined;
  readonly source: UpstreamSource;
  readonly follower: PurgeFollower;
  readonly lifetimes: Lifetimes;
  /** With a stale copy at hand nobody waits longer than this for a source that does not answer. */
  readonly staleWaitMs: number;
  readonly tagOf: (mapping: Mapping, locale: string) => string;
  readonly counts: ResolverCounts;
  readonly onFailure: (failure: SourceFailure) => void;
  readonly now: () => number;
}

/** After a failure the source is not asked again about the same key for this time, while there is a stale copy. */
const retryAfterMs = 5000;

interface Filled {
  readonly verdict: Verdict;
  /** What was kept of it. */
  readonly entry: CachedMapping | undefined;
}

/** The mapping cache: this process over the shared copies over the source, one question at a time for each key. */
export class MappingCache {
  readonly #options: MappingCacheOptions;
  readonly #flights: Flights<Filled>;

  constructor(options: MappingCacheOptions) {
    this.#options = options;
    this.#flights = new Flights(options.follower.history);
  }

  get flights(): number {
    return this.#flights.size;
  }

  /** At once when this process holds a usable copy. Never rejects. */
  find(lookup: Lookup): LookupResult | Promise<LookupResult> {
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

  async #findUncached(lookup: Lookup): Promise<LookupResult> {
    this.#options.counts.bypasses += 1;
    const verdict = await this.#ask(lookup);
    return this.#unkept(verdict, lookup, cacheStatus.notStored('bypass', false));
  }

  async #findElsewhere(lookup: Lookup, key: string): Promise<LookupResult> {
    const { shared, local, lifetimes, now } = this.#options;
    if (shared !== undefined && this.#flights.find(key, lookup.url) === undefined) {
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

  /** The shared copy as an entry of this process; none that is too old to use, or that a purge covers. */
  async #readShared(shared: SharedCache, lookup: Lookup, key: string): Promise<CachedMapping | undefined> {
    const { follower, lifetimes, local, now } = this.#options;
    const copy = await shared.get(key);
    if (copy === undefined) return undefined;
    if (!follower.history.accepts(copy.stamp, lookup.url)) {
      // Whoever wrote it has seen more of the log than this process.
      if (copy.stamp.seq > follower.history.position.seq) void follower.catchUp();
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
    lookup: Lookup,
    key: string,
    entry: CachedMapping,
    nowMs: number,
  ): LookupResult | Promise<LookupResult> {
    const { lifetimes } = this.#options;
    const isUsable = nowMs < usableUntilMs(entry, lifetimes);
    if (nowMs < staleUntilMs(entry, lifetimes)) {
      if (nowMs >= entry.retryAtMs) void this.#refresh(lookup, key, entry);
      return this.#stale(entry, 'revalidating');
    }
    if (isUsable && nowMs < entry.retryAtMs) return this.#stale(entry, 'error');
    return this.#findAtSource(lookup, key, entry);
  }

  async #refresh(lookup: Lookup, key: string, entry: CachedMapping): Promise<void> {
    if (this.#options.source.isFull || this.#flights.find(key, lookup.url) !== undefined) return;
    const { verdict } = await this.#fill(lookup, key).outcome;
    if (verdict.kind === 'failed') entry.retryAtMs = this.#options.now() + retryAfterMs;
  }

  async #findAtSource(lookup: Lookup, key: string, stale: CachedMapping | undefined): Promise<LookupResult> {
    const { counts, lifetimes, now } = this.#options;
    counts.misses += 1;
    const joined = this.#flights.find(key, lookup.url);
    if (joined !== undefined) counts.collapsed += 1;
    const flight = joined ?? this.#fill(lookup, key);
    const isUsable = stale !== undefined && now() < usableUntilMs(stale, lifetimes);
    const { verdict, entry } = await (isUsable ? this.#orTimeout(flight.outcome) : flight.outcome);
    if (verdict.kind === 'failed' && isUsable) {
      stale.retryAtMs = now() + retryAfterMs;
      // Gone when a purge came meanwhile.
      if (this.#options.local.get(key, lookup.url) === stale) return this.#stale(stale, 'error');
    }
    const fwd = stale === undefined ? 'miss' : 'stale';
    const isCollapsed = joined !== undefined;
    if (entry === undefined) return this.#unkept(verdict, lookup, cacheStatus.notStored(fwd, isCollapsed));
    const ttl = this.#secondsLeft(entry, now());
    return resultOf(entry, cacheStatus.stored(fwd, ttl, isCollapsed), ttl);
  }

  #fill(lookup: Lookup, key: string) {
    return this.#flights.start(key, async (stamp): Promise<Filled> => {
      const verdict = await this.#ask(lookup);
      return { verdict, entry: this.#keep(verdict, lookup, key, stamp) };
    });
  }

  async #ask(lookup: Lookup): Promise<Verdict> {
    const { counts, onFailure, source } = this.#options;
    counts.questions += 1;
    const verdict = await source.ask(lookup.url, lookup.partition);
    if (verdict.kind === 'failed') {
      counts.failures += 1;
      onFailure(verdict);
    }
    return verdict;
  }

  #keep(verdict: Verdict, lookup: Lookup, key: string, stamp: Position): CachedMapping | undefined {
    const { follower, local, shared, counts, now } = this.#options;
    if (verdict.kind !== 'found' && verdict.kind !== 'unknown') return undefined;
    if (!verdict.keep || !follower.history.accepts(stamp, lookup.url)) {
      counts.notKept += 1;
      return undefined;
    }
    const mapping = verdict.kind === 'found' ? verdict.mapping : null;
    const storedAtMs = now();
    const entry = cacheMapping(mapping, this.#tag(mapping, lookup), storedAtMs, stamp.seq);
    local.set(key, entry);
    shared?.put(key, { mapping, storedAtMs, stamp });
    return entry;
  }

  #unkept(verdict: Verdict, lookup: Lookup, status: string): LookupResult {
    const provenance = { cacheStatus: status, maxAgeSeconds: 0 };
    if (verdict.kind === 'unknown') return { kind: 'unknown', provenance };
    if (verdict.kind !== 'found') return verdict;
    const { mapping } = verdict;
    return { kind: 'known', mapping, tag: this.#tag(mapping, lookup), provenance };
  }

  #stale(entry: CachedMapping, why: 'revalidating' | 'error'): LookupResult {
    this.#options.counts.staleHits += 1;
    return resultOf(entry, cacheStatus.stale(this.#secondsLeft(entry, this.#options.now()), why), 0);
  }

  async #orTimeout(outcome: Promise<Filled>): Promise<Filled> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<Filled>((resolve) => {
      const late = { verdict: fail('timeout', 'timeout'), entry: undefined };
      timer = setTimeout(resolve, this.#options.staleWaitMs, late);
    });
    try {
      return await Promise.race([outcome, deadline]);
    } finally {
      clearTimeout(timer);
    }
  }

  #tag(mapping: Mapping | null, lookup: Lookup): string {
    return mapping === null ? '' : this.#options.tagOf(mapping, lookup.partition.locale);
  }

  #secondsLeft(entry: CachedMapping, nowMs: number): number {
    return Math.floor((freshUntilMs(entry, this.#options.lifetimes) - nowMs) / 1000);
  }
}

function resultOf(entry: CachedMapping, status: string, maxAgeSeconds: number): LookupResult {
  const provenance = { cacheStatus: status, maxAgeSeconds };
  if (!isFound(entry)) return { kind: 'unknown', provenance };
  return { kind: 'known', mapping: entry, tag: entry.tag, provenance };
}

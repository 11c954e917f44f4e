import type { Permit } from '../lib/fair-semaphore.ts';
import { type Eventually, withinTime } from '../lib/eventually.ts';
import { isolateLate } from '../lib/faults.ts';
import type { Mapping } from './envelope.ts';
import {
  type CachedMapping,
  isFound,
  type Lifetimes,
  type LocalCache,
  staleUntilMs,
  usableUntilMs,
} from './local-cache.ts';
import type { ResolverCounts } from './options.ts';
import type { Partition } from './partition.ts';
import type { Purges } from './purges.ts';
import { cacheStatus, type Provenance } from './response.ts';
import { fail, type LookupFailure, type LookupOutcome, type UpstreamSource } from './source.ts';

/** A look-up: a URL in a partition. */
interface MappingQuery {
  readonly url: string;
  readonly partition: Partition;
  /** The client whose permit it takes. */
  readonly client: string;
  /** From `mappingKey`; undefined: the source is asked, and nothing is cached. */
  readonly key: string | undefined;
}

/** The result of a look-up, ready to be written. */
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
  readonly source: UpstreamSource;
  readonly purges: Purges;
  readonly lifetimes: Lifetimes;
  /** Longest wait for the source where there is a stale copy. */
  readonly staleWaitMs: number;
  readonly tagOf: (mapping: Mapping, locale: string) => string;
  readonly counts: ResolverCounts;
  readonly onFailure: (failure: LookupFailure) => void;
  /** Monotonic, so that a change of the wall clock makes no mapping older or younger. */
  readonly now: () => number;
}

/** After a failure, while there is a stale copy, the source is not asked again about the same key for this time. */
const retryAfterMs = 5000;

interface Filled {
  readonly outcome: LookupOutcome;
  /** The entry that was cached; undefined: none was. */
  readonly entry: CachedMapping | undefined;
}

/** A look-up in progress or waiting for its permit. A client that leaves does not end it. */
interface Flight {
  /** The stamp of its URL, taken before the source was asked. */
  readonly stamp: number;
  readonly filled: Promise<Filled>;
}

/** The mapping cache: first this process, then the source, one look-up at a time for each key. */
export class MappingCache {
  readonly #options: MappingCacheOptions;
  /** By key, or, while it waits for its permit, by client and key. */
  readonly #flights = new Map<string, Flight>();

  constructor(options: MappingCacheOptions) {
    this.#options = options;
  }

  /** Without a promise when this process has a usable copy. Never rejects. */
  find(lookup: MappingQuery): Eventually<MappingResult> {
    const { key } = lookup;
    if (key === undefined) return this.#findUncached(lookup);
    const entry = this.#options.local.get(key, lookup.url);
    return entry === undefined ? this.#findAtSource(lookup, key, undefined) : this.#use(lookup, key, entry);
  }

  async #findUncached(lookup: MappingQuery): Promise<MappingResult> {
    const { now, source } = this.#options;
    const sinceMs = now();
    const permit = source.acquire(lookup.client);
    const isGranted = (await permit?.granted) ?? true;
    if (!isGranted) permit?.release();
    const outcome = await this.#ask(lookup, isGranted ? permit : undefined, now() - sinceMs);
    return this.#unkept(outcome, lookup, cacheStatus.notStored('bypass', false));
  }

  /** Answers from an entry; a stale one may have to wait for the source. */
  #use(lookup: MappingQuery, key: string, entry: CachedMapping): Eventually<MappingResult> {
    const { counts, lifetimes, now } = this.#options;
    const nowMs = now();
    if (nowMs < entry.freshUntilMs) {
      if (isFound(entry)) counts.hits += 1;
      else counts.notFoundHits += 1;
      const ttl = secondsLeft(entry, nowMs);
      return resultOf(entry, cacheStatus.hit(ttl), ttl);
    }
    if (nowMs < staleUntilMs(entry, lifetimes)) {
      if (nowMs >= entry.retryAtMs) isolateLate(this.#refresh(lookup, key, entry));
      return this.#stale(entry, 'revalidating');
    }
    if (nowMs < entry.retryAtMs && nowMs < usableUntilMs(entry, lifetimes))
      return this.#stale(entry, 'error');
    return this.#findAtSource(lookup, key, entry);
  }

  async #refresh(lookup: MappingQuery, key: string, entry: CachedMapping): Promise<void> {
    if (this.#flightOf(lookup, key) !== undefined) return;
    const { outcome } = await this.#fill(lookup, key).filled;
    if (outcome.kind === 'failed') entry.retryAtMs = this.#options.now() + retryAfterMs;
  }

  async #findAtSource(
    lookup: MappingQuery,
    key: string,
    stale: CachedMapping | undefined,
  ): Promise<MappingResult> {
    const { counts, lifetimes, local, now, staleWaitMs } = this.#options;
    counts.misses += 1;
    const joined = this.#flightOf(lookup, key);
    const { filled } = joined ?? this.#fill(lookup, key);
    const isUsable = stale !== undefined && now() < usableUntilMs(stale, lifetimes);
    const { outcome, entry } = await (isUsable ? withinTime(filled, staleWaitMs, lateOutcome) : filled);
    if (outcome.kind === 'failed' && isUsable) {
      stale.retryAtMs = now() + retryAfterMs;
      // A purge may have removed it meanwhile.
      if (local.get(key, lookup.url) === stale) return this.#stale(stale, 'error');
    }
    const fwd = stale === undefined ? 'miss' : 'stale';
    const isCollapsed = joined !== undefined;
    if (entry === undefined) return this.#unkept(outcome, lookup, cacheStatus.notStored(fwd, isCollapsed));
    const ttl = secondsLeft(entry, now());
    return resultOf(entry, cacheStatus.stored(fwd, ttl, isCollapsed), ttl);
  }

  /**
   * The look-up of `key` that may be joined: no purge of its URL came after it, and it has begun or is queued for the same
   * client. A client that joined the queued look-up of another would wait for all look-ups of that client.
   */
  #flightOf({ url, client }: MappingQuery, key: string): Flight | undefined {
    const stamp = this.#options.purges.stampOf(url);
    const begun = this.#flights.get(key);
    if (begun?.stamp === stamp) return begun;
    const waiting = this.#flights.get(waitingKey(client, key));
    return waiting?.stamp === stamp ? waiting : undefined;
  }

  #fill(lookup: MappingQuery, key: string): Flight {
    const { purges, local, now, source } = this.#options;
    const sinceMs = now();
    const permit = source.acquire(lookup.client);
    if (permit?.granted === undefined) return this.#begin(lookup, key, permit, 0);
    const { granted } = permit;
    return this.#fly(waitingKey(lookup.client, key), purges.stampOf(lookup.url), async () => {
      const isGranted = await granted;
      const entry = local.get(key, lookup.url);
      const isKnown = entry !== undefined && now() < entry.freshUntilMs;
      const begun = this.#flights.get(key);
      const joined = begun?.stamp === purges.stampOf(lookup.url) ? begun : undefined;
      // Another client's look-up of this key may have had its permit first.
      if (!isGranted || isKnown || joined !== undefined) permit.release();
      if (isKnown) return { outcome: outcomeOf(entry), entry };
      if (joined !== undefined) return joined.filled;
      return this.#begin(lookup, key, isGranted ? permit : undefined, now() - sinceMs).filled;
    });
  }

  /** Asks the source with the permit; undefined: there was none in time. */
  #begin(lookup: MappingQuery, key: string, permit: Permit | undefined, waitedMs: number): Flight {
    const stamp = this.#options.purges.stampOf(lookup.url);
    return this.#fly(key, stamp, async () => {
      const outcome = await this.#ask(lookup, permit, waitedMs);
      return { outcome, entry: this.#keep(outcome, lookup, key, stamp) };
    });
  }

  #fly(name: string, stamp: number, fill: () => Promise<Filled>): Flight {
    const flight = { stamp, filled: fill() };
    this.#flights.set(name, flight);
    const ended = flight.filled.finally(() => {
      if (this.#flights.get(name) === flight) this.#flights.delete(name);
    });
    isolateLate(ended);
    return flight;
  }

  async #ask(lookup: MappingQuery, permit: Permit | undefined, waitedMs: number): Promise<LookupOutcome> {
    const { counts, onFailure, source } = this.#options;
    counts.lookups += 1;
    const outcome =
      permit === undefined
        ? fail('overloaded', 'look-ups')
        : await source.ask(lookup.url, lookup.partition, permit, waitedMs);
    if (outcome.kind === 'failed') {
      counts.failures += 1;
      onFailure(outcome);
    }
    return outcome;
  }

  #keep(outcome: LookupOutcome, lookup: MappingQuery, key: string, stamp: number): CachedMapping | undefined {
    const { purges, local, lifetimes, now } = this.#options;
    if (outcome.kind !== 'found' && outcome.kind !== 'unknown') return undefined;
    if (!outcome.keep || stamp !== purges.stampOf(lookup.url)) return undefined;
    const mapping = outcome.kind === 'found' ? outcome.mapping : null;
    const entry: CachedMapping = {
      entityType: mapping?.entityType ?? null,
      entityId: mapping?.entityId ?? '',
      tag: mapping === null ? '' : this.#tag(mapping, lookup),
      freshUntilMs: now() + (mapping === null ? lifetimes.notFoundTtlMs : lifetimes.ttlMs),
      stamp,
      version: purges.version,
      retryAtMs: 0,
    };
    local.set(key, entry);
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
    return resultOf(entry, cacheStatus.stale(secondsLeft(entry, this.#options.now()), why), 0);
  }

  #tag(mapping: Mapping, { partition }: MappingQuery): string {
    return this.#options.tagOf(mapping, partition.locale);
  }
}

function waitingKey(client: string, key: string): string {
  return `${client} ${key}`;
}

function outcomeOf(entry: CachedMapping): LookupOutcome {
  return isFound(entry) ? { kind: 'found', mapping: entry, keep: true } : { kind: 'unknown', keep: true };
}

function lateOutcome(): Filled {
  return { outcome: fail('timeout', 'timeout'), entry: undefined };
}

function secondsLeft(entry: CachedMapping, nowMs: number): number {
  return Math.floor((entry.freshUntilMs - nowMs) / 1000);
}

function resultOf(entry: CachedMapping, status: string, maxAgeSeconds: number): MappingResult {
  const provenance = { cacheStatus: status, maxAgeSeconds };
  if (!isFound(entry)) return { kind: 'unknown', provenance };
  return { kind: 'known', mapping: entry, tag: entry.tag, provenance };
}

import { LRUCache } from 'lru-cache';
import type { Mapping } from './envelope.ts';
import type { PurgeHistory } from './purge-history.ts';

/** How long entries live, in milliseconds. */
export interface Lifetimes {
  /** Freshness of a mapping. */
  readonly ttlMs: number;
  /** Freshness of "not found", which is never used stale. */
  readonly notFoundTtlMs: number;
  /** How long a stale mapping is used while the source is asked again. */
  readonly staleWhileRevalidateMs: number;
  /** How long a stale mapping is used when the source fails. */
  readonly staleIfErrorMs: number;
}

/**
 * What is known about one key. Flat, with as few members as possible: with a million entries asked at random, each further
 * object is a miss of the processor's caches.
 */
export interface CachedMapping {
  /** Null: the source said that there is none. */
  readonly entityType: string | null;
  readonly entityId: string;
  /** Entity tag of the document; empty when there is none. */
  readonly tag: string;
  /** When the source gave it, in ms since 1970. */
  readonly storedAtMs: number;
  /** Number of the last purge that is known not to cover the entry. */
  seq: number;
  /** After a failure of the source for this key: when it may be asked again. */
  retryAtMs: number;
}

export function cacheMapping(
  mapping: Mapping | null,
  tag: string,
  storedAtMs: number,
  seq: number,
): CachedMapping {
  const { entityType = null, entityId = '' } = mapping ?? {};
  return { entityType, entityId, tag, storedAtMs, seq, retryAtMs: 0 };
}

export function isFound(entry: CachedMapping): entry is CachedMapping & Mapping {
  return entry.entityType !== null;
}

export function freshUntilMs(entry: CachedMapping, { ttlMs, notFoundTtlMs }: Lifetimes): number {
  return entry.storedAtMs + (isFound(entry) ? ttlMs : notFoundTtlMs);
}

/** Until when an entry is used while the source is asked again; "not found" only while it is fresh. */
export function staleUntilMs(entry: CachedMapping, lifetimes: Lifetimes): number {
  return freshUntilMs(entry, lifetimes) + (isFound(entry) ? lifetimes.staleWhileRevalidateMs : 0);
}

export function usableUntilMs(entry: CachedMapping, lifetimes: Lifetimes): number {
  return freshUntilMs(entry, lifetimes) + (isFound(entry) ? lifetimes.staleIfErrorMs : 0);
}

/** "Not found" entries have a tenth of the room to themselves, so that random URLs cannot evict mappings. */
const notFoundShare = 10;

/** The entries of this process, bounded by count; keys are bounded by `mappingKey`. */
export class LocalCache {
  readonly #found: LRUCache<string, CachedMapping>;
  readonly #notFound: LRUCache<string, CachedMapping>;
  readonly #history: PurgeHistory;

  constructor(maxEntries: number, history: PurgeHistory) {
    this.#found = createCache(maxEntries);
    this.#notFound = createCache(Math.max(1, Math.floor(maxEntries / notFoundShare)));
    this.#history = history;
  }

  get size(): number {
    return this.#found.size + this.#notFound.size;
  }

  /** The entry, fresh or stale; none that was purged. */
  get(key: string, url: string): CachedMapping | undefined {
    const entry = this.#found.get(key) ?? this.#notFound.get(key);
    if (entry === undefined) return undefined;
    const { seq } = this.#history.position;
    if (entry.seq !== seq) {
      if (this.#history.isPurgedSince(entry.seq, url)) {
        this.#delete(key);
        return undefined;
      }
      entry.seq = seq;
    }
    return entry;
  }

  set(key: string, entry: CachedMapping): void {
    if (isFound(entry)) {
      this.#notFound.delete(key);
      this.#found.set(key, entry);
    } else {
      this.#found.delete(key);
      this.#notFound.set(key, entry);
    }
  }

  clear(): void {
    this.#found.clear();
    this.#notFound.clear();
  }

  #delete(key: string): void {
    this.#found.delete(key);
    this.#notFound.delete(key);
  }
}

/** Bounded by size, with 1 for each entry: with `max` lru-cache would allocate the room of all entries at once. */
function createCache(maxEntries: number): LRUCache<string, CachedMapping> {
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 });
}

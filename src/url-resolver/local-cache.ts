import { LRUCache } from 'lru-cache';
import type { Mapping } from './envelope.ts';
import type { PurgeHistory } from './purge-history.ts';

/** How long entries live, in milliseconds. */
export interface Lifetimes {
  /** Freshness of a mapping. */
  readonly ttlMs: number;
  /** Freshness of "not found"; it is never given out stale. */
  readonly notFoundTtlMs: number;
  /** How long after its freshness a mapping is given out while it is asked anew. */
  readonly staleWhileRevalidateMs: number;
  /** How long after its freshness a mapping is given out when the source fails. */
  readonly staleIfErrorMs: number;
}

/**
 * What is known about one key: flat, and with as few numbers as do. Of a million that are asked at random each object more
 * is a miss of the processor's caches.
 */
export interface CachedMapping {
  /** Null: the source said that there is none. */
  readonly entityType: string | null;
  readonly entityId: string;
  /** Entity tag of the document; empty when there is none. */
  readonly tag: string;
  /** When the source gave it, in ms since 1970. */
  readonly storedAtMs: number;
  /** Highest place in the purge log up to which the entry is known to hold. */
  seq: number;
  /** The source failed for this key: it is not asked again before. */
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

/** "Not found" is never stale: it is fresh, or gone. */
export function staleUntilMs(entry: CachedMapping, lifetimes: Lifetimes): number {
  return freshUntilMs(entry, lifetimes) + (isFound(entry) ? lifetimes.staleWhileRevalidateMs : 0);
}

export function usableUntilMs(entry: CachedMapping, lifetimes: Lifetimes): number {
  return freshUntilMs(entry, lifetimes) + (isFound(entry) ? lifetimes.staleIfErrorMs : 0);
}

/** "Not found" may take a tenth of the room, of its own: random URLs cannot push mappings out. */
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

/** The bound is a size, each entry being 1: `max` would take the room of all entries at once, before there is any. */
function createCache(maxEntries: number): LRUCache<string, CachedMapping> {
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 });
}

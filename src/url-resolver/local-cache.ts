import { LRUCache } from 'lru-cache';
import type { Mapping } from './envelope.ts';
import type { Purges } from './purges.ts';

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
  /** By a monotonic clock. */
  readonly freshUntilMs: number;
  /** The stamp of its URL, taken before the source was asked. */
  readonly stamp: number;
  /** The version of `Purges` when the stamp was last compared. */
  version: number;
  /** After a failure of the source for this key: when it may be asked again. */
  retryAtMs: number;
}

export function isFound(entry: CachedMapping): entry is CachedMapping & Mapping {
  return entry.entityType !== null;
}

/** Until when an entry is used while the source is asked again; "not found" only while it is fresh. */
export function staleUntilMs(entry: CachedMapping, lifetimes: Lifetimes): number {
  return entry.freshUntilMs + (isFound(entry) ? lifetimes.staleWhileRevalidateMs : 0);
}

/** Until when an entry is used when the source fails. */
export function usableUntilMs(entry: CachedMapping, lifetimes: Lifetimes): number {
  return entry.freshUntilMs + (isFound(entry) ? lifetimes.staleIfErrorMs : 0);
}

/** "Not found" entries have a tenth of the room to themselves, so that random URLs cannot evict mappings. */
const notFoundShare = 10;

/**
 * The entries of this process, bounded by count; `mappingKey` bounds the length of keys. `fetchMethod` of lru-cache cannot be
 * used: what it looks up takes room among the mappings, and an answer that must not be stored would reach no waiting request.
 */
export class LocalCache {
  readonly #found: LRUCache<string, CachedMapping>;
  readonly #notFound: LRUCache<string, CachedMapping>;
  readonly #purges: Purges;

  constructor(maxEntries: number, purges: Purges) {
    this.#found = createCache(maxEntries);
    this.#notFound = createCache(Math.max(1, Math.floor(maxEntries / notFoundShare)));
    this.#purges = purges;
  }

  get size(): number {
    return this.#found.size + this.#notFound.size;
  }

  /** The entry, fresh or stale, unless it was purged. */
  get(key: string, url: string): CachedMapping | undefined {
    const entry = this.#found.get(key) ?? this.#notFound.get(key);
    if (entry === undefined || entry.version === this.#purges.version) return entry;
    if (entry.stamp === this.#purges.stampOf(url)) {
      entry.version = this.#purges.version;
      return entry;
    }
    this.#found.delete(key);
    this.#notFound.delete(key);
    return undefined;
  }

  set(key: string, entry: CachedMapping): void {
    const [into, other] = isFound(entry) ? [this.#found, this.#notFound] : [this.#notFound, this.#found];
    other.delete(key);
    into.set(key, entry);
  }
}

/** Bounded by size, with 1 for each entry: with `max` lru-cache would allocate the room of all entries at once. */
function createCache(maxEntries: number): LRUCache<string, CachedMapping> {
  return new LRUCache({ maxSize: maxEntries, sizeCalculation: () => 1 });
}

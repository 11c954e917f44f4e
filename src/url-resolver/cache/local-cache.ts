import { LRUCache } from 'lru-cache';
import type { PurgeHistory } from '../purge/purge-history.ts';
import { type CachedMapping, isFound } from './cached-mapping.ts';

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

import type { EntityType, Mapping } from '../mapping.ts';

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
  readonly entityType: EntityType | null;
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

import type { Mapping } from '../mapping.ts';

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

/** What is known about one key. `mapping` null: the source said that there is none. */
export interface CachedMapping {
  readonly mapping: Mapping | null;
  /** Entity tag of the document; empty when there is none. */
  readonly tag: string;
  readonly freshUntilMs: number;
  readonly staleUntilMs: number;
  readonly usableUntilMs: number;
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
  lifetimes: Lifetimes,
): CachedMapping {
  const freshUntilMs = storedAtMs + (mapping === null ? lifetimes.notFoundTtlMs : lifetimes.ttlMs);
  return {
    mapping,
    tag,
    freshUntilMs,
    staleUntilMs: mapping === null ? freshUntilMs : freshUntilMs + lifetimes.staleWhileRevalidateMs,
    usableUntilMs: mapping === null ? freshUntilMs : freshUntilMs + lifetimes.staleIfErrorMs,
    seq,
    retryAtMs: 0,
  };
}

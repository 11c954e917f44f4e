import type { Position, Purge, PurgeEntry } from './purge.ts';

/** The log of purges that all replicas follow. */
export interface PurgeLog {
  /** Appends and publishes in one step. Rejects when the log cannot be reached: the purge is then not in force. */
  append(purge: Purge): Promise<PurgeEntry>;
  /** What follows `from`, or where the log stands if `from` is not on it. Rejects when the log cannot be reached. */
  read(from: Position): Promise<PurgeReading>;
  /** Tells of each new entry, and of each moment after which entries may have been missed. Returns the end of it. */
  subscribe(listener: PurgeListener): () => void;
}

export type PurgeReading =
  | { readonly kind: 'continues'; readonly entries: readonly PurgeEntry[] }
  | { readonly kind: 'another-past'; readonly position: Position };

export interface PurgeListener {
  onEntry(entry: PurgeEntry): void;
  onGap(): void;
}

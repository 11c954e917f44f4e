import { randomUUID } from 'node:crypto';
import type { Position, Purge, PurgeEntry } from './purge.ts';
import { retainedPurges } from './purge-history.ts';
import type { PurgeListener, PurgeLog, PurgeReading } from './purge-log.ts';

/** The log of one process that has no Redis. Several resolvers may follow it. */
export class MemoryPurgeLog implements PurgeLog {
  #entries: PurgeEntry[] = [{ seq: 0, id: randomUUID(), previousId: '', purge: null }];
  readonly #listeners = new Set<PurgeListener>();

  async append(purge: Purge): Promise<PurgeEntry> {
    const last = this.#last();
    const entry = { seq: last.seq + 1, id: randomUUID(), previousId: last.id, purge };
    this.#entries.push(entry);
    if (this.#entries.length > 2 * retainedPurges) this.#entries = this.#entries.slice(-retainedPurges);
    for (const listener of this.#listeners) listener.onEntry(entry);
    return entry;
  }

  async read(from: Position): Promise<PurgeReading> {
    const index = this.#entries.findIndex((entry) => entry.seq === from.seq && entry.id === from.id);
    if (index < 0) return { kind: 'another-past', position: this.#last() };
    return { kind: 'continues', entries: this.#entries.slice(index + 1) };
  }

  subscribe(listener: PurgeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #last(): PurgeEntry {
    return this.#entries[this.#entries.length - 1] as PurgeEntry;
  }
}

import { LRUCache } from 'lru-cache';
import { networkOf } from '../http/peer.ts';

const hourMs = 3_600_000;
/** An entry takes 100 bytes. `maxSize`, because `max` would allocate all entries at the start. */
const maxClients = { maxSize: 50_000, sizeCalculation: () => 1 };

/** Limits the new records for reads without a verified token: anyone can invent ids, and a shop may answer them all with 200. */
export class AnonymousRecords {
  readonly #most: number;
  readonly #made: LRUCache<string, { count: number }>;

  /** `most`: maximum number of new records of one client in an hour. `now`: monotonic milliseconds. */
  constructor(most: number, now = () => performance.now()) {
    this.#most = most;
    this.#made = new LRUCache({ ...maxClients, ttl: hourMs, perf: { now }, ttlResolution: 0 });
  }

  /** Undefined: the client may make no more. Otherwise the caller gives back a record that was not made. */
  take(address: string): { giveBack(): void } | undefined {
    const client = networkOf(address);
    const made = this.#made.get(client) ?? { count: 0 };
    if (made.count >= this.#most) return undefined;
    // The hour begins with the first record.
    if (made.count === 0) this.#made.set(client, made);
    made.count += 1;
    return {
      giveBack: () => {
        made.count -= 1;
      },
    };
  }
}

import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { TagRecord } from './protocol.ts';
import * as steps from './protocol.ts';
import {
  type Claim,
  type ClaimEnd,
  guardedCollectionOf,
  type ReadEnd,
  type ResourceKey,
  type TagStore,
} from './tag-store.ts';
import type { EntityTagTimes } from './times.ts';

interface MemoryTagStoreOptions {
  readonly times: Pick<EntityTagTimes, 'leaseMs' | 'longestReadMs' | 'recordExpiryMs' | 'anonymousExpiryMs'>;
  /** Maximum number of records that are kept; the least recently used one is dropped. Default 100000. */
  readonly maxRecords?: number;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
}

/** Number of busy records above which the store looks for leases that have expired unnoticed. */
const sweptFrom = 1_000;

/**
 * Tags of one process: nothing survives it, and nothing is shared. There is no cold start, so it does not protect a write
 * during which its process is killed; this limit is documented.
 */
export class MemoryTagStore implements TagStore {
  /** Identity of the data, valid as long as the process. Random, so that clients cannot compute variants. */
  readonly epoch = randomUUID();
  readonly #times: steps.ProtocolTimes;
  readonly #expiries: Pick<EntityTagTimes, 'recordExpiryMs' | 'anonymousExpiryMs'>;
  readonly #now: () => number;
  /** A record with a lease or an indeterminate write is never dropped. */
  readonly #busy = new Map<ResourceKey, TagRecord>();
  readonly #idle: LRUCache<ResourceKey, TagRecord>;
  #evictedChangeAt = 0;
  #sweepAbove = sweptFrom;

  constructor({ times, maxRecords = 100_000, now = () => performance.now() }: MemoryTagStoreOptions) {
    this.#now = now;
    this.#expiries = times;
    this.#times = { lease: times.leaseMs * 1000, coldStart: 0, longestRead: times.longestReadMs * 1000 };
    this.#idle = new LRUCache({
      // `maxSize` with records of size 1: `max` would allocate room for all records at the start.
      maxSize: maxRecords,
      sizeCalculation: () => 1,
      ttl: times.recordExpiryMs,
      perf: { now: this.#now },
      // Otherwise the clock is read at most once a millisecond, by a timer that costs more than reading it.
      ttlResolution: 0,
      disposeAfter: ({ changedAt, replacedAt }, _, reason) => {
        if (reason !== 'evict') return;
        this.#evictedChangeAt = Math.max(this.#evictedChangeAt, changedAt, replacedAt);
      },
    });
  }

  lookUp(key: ResourceKey) {
    return steps.lookUp(this.#open(key, this.#collectionOf(key)));
  }

  readStampAt(_: ResourceKey, startedAt: number) {
    return { epoch: this.epoch, startedAt: Math.round(startedAt * 1000) };
  }

  hasHeard() {
    return true;
  }

  endRead(key: ResourceKey, read: ReadEnd) {
    const opened = this.#open(key, this.#collectionOf(key));
    return this.#store(key, steps.endRead(opened, read, this.#times), read.isAnonymous);
  }

  claim(key: ResourceKey, wanted: Claim) {
    const whole = this.#collectionOf(key);
    const opened = this.#open(key, whole);
    if (whole === null) return this.#store(key, steps.claim(opened, wanted, this.#times), wanted.isAnonymous);
    const step = steps.claimMember(opened, whole, wanted, this.#times);
    return this.#storeBoth(key, step, wanted.isAnonymous);
  }

  end(key: ResourceKey, write: ClaimEnd) {
    const whole = this.#collectionOf(key);
    const opened = this.#open(key, whole);
    if (whole === null) return this.#store(key, steps.end(opened, write, this.#times), write.isAnonymous);
    return this.#storeBoth(key, steps.endMember(opened, whole, write, this.#times), write.isAnonymous);
  }

  async warmUp() {
    return 0;
  }

  coldStartLeftMs() {
    return 0;
  }

  /** Null: the key is not of a member of a guarded collection. */
  #collectionOf(key: ResourceKey): steps.Opened | null {
    const collection = guardedCollectionOf(key);
    return collection === undefined || collection === key ? null : this.#open(collection);
  }

  #open(key: ResourceKey, whole: steps.Opened | null = null): steps.Opened {
    const stored = this.#busy.get(key) ?? this.#idle.get(key) ?? null;
    // A read that began in the same microsecond counts as earlier.
    const now = Math.round(this.#now() * 1000) + 1;
    const moment = { now, epoch: this.epoch, since: 0, evictedChangeAt: this.#evictedChangeAt };
    const opened = steps.open(stored, moment, this.#times);
    return whole === null ? opened : steps.ofCollection(opened, whole);
  }

  #storeBoth<T>(key: ResourceKey, step: steps.MemberStep<T>, isAnonymous?: boolean): T {
    const collection = guardedCollectionOf(key);
    if (collection !== undefined) this.#store(collection, { record: step.collection, answer: null });
    return this.#store(key, step, isAnonymous);
  }

  #store<T>(key: ResourceKey, { record, answer }: steps.Step<T>, isAnonymous = false): T {
    if (record !== null && (record.leases.length > 0 || record.indeterminateUntil !== 0)) {
      this.#busy.set(key, record);
      this.#idle.delete(key);
      if (this.#busy.size > this.#sweepAbove) this.#sweep();
      return answer;
    }
    this.#busy.delete(key);
    // A collection outlives its members, whose older states it voids.
    const lives = key.endsWith('.') ? 2 : 1;
    if (record === null) this.#idle.delete(key);
    else this.#idle.set(key, record, { ttl: this.#ttlOf(key, isAnonymous) * lives });
    return answer;
  }

  /** A record of an anonymous client expires early, but no such client shortens the life of another record. */
  #ttlOf(key: ResourceKey, isAnonymous: boolean): number {
    const { recordExpiryMs, anonymousExpiryMs } = this.#expiries;
    return isAnonymous ? Math.max(this.#idle.getRemainingTTL(key), anonymousExpiryMs) : recordExpiryMs;
  }

  /** Applies what has expired in records that no call has read since. */
  #sweep(): void {
    // Storing a record that is still busy must not start another sweep.
    this.#sweepAbove = Number.POSITIVE_INFINITY;
    for (const key of this.#busy.keys()) this.#store(key, { record: this.#open(key).record, answer: null });
    this.#sweepAbove = Math.max(sweptFrom, this.#busy.size * 2);
  }
}

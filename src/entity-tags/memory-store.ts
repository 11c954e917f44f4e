import { LRUCache } from 'lru-cache';
import {
  claim,
  end,
  endRead,
  lookUp,
  markSent,
  type Opened,
  open,
  type ProtocolTimes,
  type Step,
  type TagRecord,
} from './protocol.ts';
import type { ResourceKey, TagStore } from './tag-store.ts';
import type { EntityTagTimes } from './times.ts';

export interface MemoryTagStoreOptions {
  readonly times: Pick<
    EntityTagTimes,
    'leaseMs' | 'sendByMs' | 'longestReadMs' | 'recordExpiryMs' | 'strangersExpiryMs'
  >;
  /** Records that are kept; the one that was used least recently goes. Default 100000. */
  readonly maxRecords?: number;
  /** Milliseconds, monotonic. Default `performance.now`. */
  readonly now?: () => number;
  /** The steps of the protocol; tests pass ones that they have broken. */
  readonly protocol?: Protocol;
}

export type Protocol = Pick<
  typeof import('./protocol.ts'),
  'open' | 'lookUp' | 'endRead' | 'claim' | 'markSent' | 'end'
>;

/**
 * Tags of one process: nothing survives it, and nothing is shared. No cold start, since leases of a process that ended
 * cannot be told from none: a kill in the middle of a write is the named limit of this store.
 */
export function createMemoryTagStore(options: MemoryTagStoreOptions): TagStore {
  const { times, maxRecords = 100_000, now = performance.now.bind(performance) } = options;
  const protocol = options.protocol ?? { open, lookUp, endRead, claim, markSent, end };
  const protocolTimes: ProtocolTimes = {
    lease: times.leaseMs * 1000,
    sendBy: times.sendByMs * 1000,
    coldStart: 0,
    longestRead: times.longestReadMs * 1000,
  };
  const epoch = 'memory';
  const micros = () => Math.round(now() * 1000) + 1;
  /** Reads that began before a record was dropped for want of room prove nothing about its successor. */
  let droppedAt = 0;
  /** A record with a lease or an indeterminate write is never dropped. */
  const busy = new Map<ResourceKey, TagRecord>();
  const idle = new LRUCache<ResourceKey, TagRecord>({
    // As a size, each record being 1: `max` would take the room of all of them at the start.
    maxSize: maxRecords,
    sizeCalculation: () => 1,
    ttl: times.recordExpiryMs,
    perf: { now },
    disposeAfter(_, __, reason) {
      if (reason === 'evict') droppedAt = micros();
    },
  });

  const look = (key: ResourceKey): Opened =>
    protocol.open(busy.get(key) ?? idle.get(key) ?? null, { now: micros(), epoch, since: 0 }, protocolTimes);
  const store = <T>(key: ResourceKey, { record, answer }: Step<T>, isOfStranger = false): T => {
    if (record === null) {
      busy.delete(key);
      idle.delete(key);
      return answer;
    }
    const isBusy = record.leases.length > 0 || record.indeterminateUntil !== 0;
    if (isBusy) {
      busy.set(key, record);
      idle.delete(key);
      if (busy.size > sweepAbove) sweep();
    } else {
      // What a stranger leaves goes soon; but nobody makes a record's life shorter.
      const left = isOfStranger ? idle.getRemainingTTL(key) : 0;
      const ttl = isOfStranger ? Math.max(left, times.strangersExpiryMs) : times.recordExpiryMs;
      idle.set(key, record, { ttl });
      busy.delete(key);
    }
    return answer;
  };
  /** Settles what ran out and was never looked at again. */
  const sweep = () => {
    for (const key of busy.keys()) store(key, { record: look(key).record, answer: null });
    sweepAbove = Math.max(1000, busy.size * 2);
  };
  let sweepAbove = 1000;
  return {
    kind: 'memory',
    lookUp: (key, variant) => protocol.lookUp(look(key), variant),
    readStampAt: (_, startedAt) => ({ epoch, generation: null, startedAt: Math.round(startedAt * 1000) }),
    hasHeard: () => true,
    endRead(key, read) {
      const opened = look(key);
      if (opened.record === null && read.stamp.startedAt <= droppedAt) return null;
      return store(key, protocol.endRead(opened, read, protocolTimes), read.isOfStranger);
    },
    claim: (key, wanted) => store(key, protocol.claim(look(key), wanted, protocolTimes), wanted.isOfStranger),
    markSent: (key, token) => store(key, protocol.markSent(look(key), token, protocolTimes)),
    end: (key, write) => store(key, protocol.end(look(key), write, protocolTimes), write.isOfStranger),
    warmUp: async () => 0,
    coldStartLeftMs: () => 0,
    close: async () => {},
  };
}

import { hash } from 'node:crypto';
import { withinTime } from '../lib/eventually.ts';
import { parseJson } from '../lib/json.ts';
import type { Redis } from '../redis/redis.ts';
import { type Mapping, toMapping } from './envelope.ts';
import type { Lifetimes } from './local-cache.ts';

/** The port to the copies that replicas share, in slots. Its calls reject when the store cannot be reached. */
export interface SharedMapping {
  /** False while the store is known to be away: a call could only wait for its deadline. */
  isReady(): boolean;
  /** The value of `slot`; null: there is none. */
  read(slot: string): Promise<string | null>;
  /** Replaces the value of `slot`, which expires after `ttlMs`. */
  write(slot: string, value: string, ttlMs: number): Promise<void>;
}

interface SharedCacheOptions {
  readonly store: SharedMapping;
  /** Number of slots, which bounds what the store holds. */
  readonly slots: number;
  /** Longest wait for a look-up, in milliseconds. */
  readonly timeoutMs: number;
  readonly lifetimes: Lifetimes;
  /** Copies of other types are ignored. */
  readonly entityTypes: readonly string[];
  /** Since 1970: the age of a copy is what two processes' clocks make of it. */
  readonly wallClock: () => number;
}

/** Reads and writes the shared copies, with a deadline. Its failures never fail a look-up. */
export class SharedCache {
  readonly #options: SharedCacheOptions;

  constructor(options: SharedCacheOptions) {
    this.#options = options;
  }

  /** The copy of `key`; undefined: there is none, it is not readable, or the store is away. Never rejects. */
  async get(key: string): Promise<SharedCopy | undefined> {
    const { entityTypes, slots, store, timeoutMs, wallClock } = this.#options;
    if (!store.isReady()) return undefined;
    const read = store.read(slotOf(key, slots)).catch(() => null);
    const text = await withinTime(read, timeoutMs, () => null);
    return text === null ? undefined : readSharedCopy(key, text, entityTypes, wallClock());
  }

  /** Shares what the source has just given, in the background. */
  put(key: string, copy: Omit<SharedCopy, 'ageMs'>): void {
    const { lifetimes, slots, store, wallClock } = this.#options;
    if (!store.isReady()) return;
    const ttlMs =
      copy.mapping === null
        ? lifetimes.notFoundTtlMs
        : lifetimes.ttlMs + Math.max(lifetimes.staleIfErrorMs, lifetimes.staleWhileRevalidateMs);
    const written = store.write(slotOf(key, slots), writeSharedCopy(key, copy, wallClock()), ttlMs);
    written.catch(() => {});
  }
}

/** A mapping as replicas share it. */
interface SharedCopy {
  readonly mapping: Mapping | null;
  /** Milliseconds since the source gave it; 0 where the clock of its writer is ahead. */
  readonly ageMs: number;
  /** Of its URL, from before the source was asked. */
  readonly stamp: string;
}

const version = 2;

function writeSharedCopy(key: string, copy: Omit<SharedCopy, 'ageMs'>, storedAtMs: number): string {
  const { mapping, stamp } = copy;
  const { entityType = null, entityId = null } = mapping ?? {};
  return JSON.stringify([version, key, entityType, entityId, storedAtMs, stamp]);
}

/** Undefined for the value of another key in the same slot, another version, or anything else. Exported for its tests. */
export function readSharedCopy(
  key: string,
  text: string,
  entityTypes: readonly string[],
  nowMs: number,
): SharedCopy | undefined {
  const parts = parseJson(text);
  if (!Array.isArray(parts) || parts[0] !== version || parts[1] !== key) return undefined;
  const [, , entityType, entityId, storedAtMs, stamp] = parts;
  if (typeof storedAtMs !== 'number' || typeof stamp !== 'string') return undefined;
  const ageMs = Math.max(0, nowMs - storedAtMs);
  if (entityType === null) return { mapping: null, ageMs, stamp };
  const mapping = toMapping(entityType, entityId, entityTypes);
  return mapping && { mapping, ageMs, stamp };
}

/**
 * The slot of a key. A fixed number of slots bounds the keys in the store, whatever URLs are asked for. Two keys in one slot
 * replace each other, which costs a look-up.
 */
function slotOf(key: string, slots: number): string {
  return (Number.parseInt(hash('sha256', key, 'hex').slice(0, 12), 16) % slots).toString(36);
}

/** Slots as keys `<prefix>:mapping:<slot>` in Redis. `prefix` keeps deployments apart. */
export function createRedisSharedMapping(redis: Redis, prefix: string): SharedMapping {
  return {
    isReady: () => redis.state().status === 'ready',
    async read(slot) {
      const text = await redis.command('GET', `${prefix}:mapping:${slot}`);
      return typeof text === 'string' ? text : null;
    },
    async write(slot, value, ttlMs) {
      await redis.command('SET', `${prefix}:mapping:${slot}`, value, 'PX', Math.max(1, Math.floor(ttlMs)));
    },
  };
}

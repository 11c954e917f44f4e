import { hash } from 'node:crypto';
import { withinTime } from '../lib/eventually.ts';
import { isolateLate } from '../lib/faults.ts';
import { parseJson } from '../lib/json.ts';
import type { Redis } from '../redis/redis.ts';
import { type Mapping, toMapping } from './envelope.ts';
import type { Lifetimes } from './local-cache.ts';
import type { Position } from './purge-log.ts';

/** The port to the copies that replicas share, in slots. Both calls reject when the store is away. */
export interface SharedMapping {
  /** The values of `slots`, in their order; null where there is none. */
  read(slots: readonly string[]): Promise<readonly (string | null)[]>;
  /** Replaces the value of `slot`, which expires after `ttlMs`. */
  write(slot: string, value: string, ttlMs: number): Promise<void>;
}

interface SharedCacheOptions {
  readonly store: SharedMapping;
  /** Number of slots, which bounds what the store holds. */
  readonly slots: number;
  /** Longest wait for a lookup, in milliseconds. */
  readonly timeoutMs: number;
  readonly lifetimes: Lifetimes;
  /** Copies of other types are ignored. */
  readonly entityTypes: readonly string[];
  readonly now: () => number;
  /** Called when the store goes away, and when it is back. */
  readonly onChange: (isAway: boolean, cause?: unknown) => void;
}

/** While the store is away it is tried once in this time; other lookups go on without it at once. */
const pauseMs = 1000;

/** Reads and writes the shared copies: in batches, with a deadline. Its failures never fail a lookup. */
export class SharedCache {
  readonly #options: SharedCacheOptions;
  readonly #batch: ReadBatch;
  #awayUntilMs = 0;
  #isAway = false;

  constructor(options: SharedCacheOptions) {
    this.#options = options;
    this.#batch = new ReadBatch((slots) => this.#read(slots));
  }

  get isAway(): boolean {
    return this.#isAway;
  }

  /** The copy of `key`; undefined: there is none, it is not readable, or the store is away. Never rejects. */
  async get(key: string): Promise<SharedCopy | undefined> {
    if (this.#isPaused()) return undefined;
    try {
      const text = await this.#batch.get(slotOf(key, this.#options.slots));
      return text === null ? undefined : readSharedCopy(key, text, this.#options.entityTypes);
    } catch {
      return undefined;
    }
  }

  /** Shares a copy, in the background. */
  put(key: string, copy: SharedCopy): void {
    if (this.#isPaused()) return;
    const { lifetimes, slots, store } = this.#options;
    const ttlMs =
      copy.mapping === null
        ? lifetimes.notFoundTtlMs
        : lifetimes.ttlMs + Math.max(lifetimes.staleIfErrorMs, lifetimes.staleWhileRevalidateMs);
    const written = store.write(slotOf(key, slots), writeSharedCopy(key, copy), ttlMs).then(
      () => this.#settle(false),
      (cause) => this.#settle(true, cause),
    );
    isolateLate(written);
  }

  async #read(slots: readonly string[]): Promise<readonly (string | null)[]> {
    try {
      const values = await withinTime(this.#options.store.read(slots), this.#options.timeoutMs, () => {
        throw new Error('no answer in time');
      });
      this.#settle(false);
      return values;
    } catch (cause) {
      this.#settle(true, cause);
      throw cause;
    }
  }

  #isPaused(): boolean {
    return this.#isAway && this.#options.now() < this.#awayUntilMs;
  }

  #settle(isAway: boolean, cause?: unknown): void {
    if (isAway) this.#awayUntilMs = this.#options.now() + pauseMs;
    if (isAway === this.#isAway) return;
    this.#isAway = isAway;
    this.#options.onChange(isAway, cause);
  }
}

/** A mapping as replicas share it. */
interface SharedCopy {
  readonly mapping: Mapping | null;
  /** When the source gave it, in ms since 1970. */
  readonly storedAtMs: number;
  readonly stamp: Position;
}

const version = 1;

function writeSharedCopy(key: string, copy: SharedCopy): string {
  const { mapping, storedAtMs, stamp } = copy;
  return JSON.stringify([
    version,
    key,
    mapping?.entityType ?? null,
    mapping?.entityId ?? null,
    storedAtMs,
    stamp.seq,
    stamp.id,
  ]);
}

/** Undefined for the value of another key in the same slot, another version, or anything else. Exported for its tests. */
export function readSharedCopy(
  key: string,
  text: string,
  entityTypes: readonly string[],
): SharedCopy | undefined {
  const parts = parseJson(text);
  if (!Array.isArray(parts) || parts[0] !== version || parts[1] !== key) return undefined;
  const [, , entityType, entityId, storedAtMs, seq, id] = parts;
  if (typeof storedAtMs !== 'number' || typeof seq !== 'number' || typeof id !== 'string') return undefined;
  const stamp = { seq, id };
  if (entityType === null) return { mapping: null, storedAtMs, stamp };
  const mapping = toMapping(entityType, entityId, entityTypes);
  return mapping && { mapping, storedAtMs, stamp };
}

/**
 * The slot of a key. A fixed number of slots bounds the keys in the store, whatever URLs are asked for. Two keys in one slot
 * replace each other, which costs a lookup.
 */
function slotOf(key: string, slots: number): string {
  return (Number.parseInt(hash('sha256', key, 'hex').slice(0, 12), 16) % slots).toString(36);
}

/** Reads all slots that are asked for in one turn of the event loop at once, each only once. */
class ReadBatch {
  readonly #read: (slots: readonly string[]) => Promise<readonly (string | null)[]>;
  #waiting: string[] = [];
  #places = new Map<string, number>();
  #answer: Promise<readonly (string | null)[]> | undefined;

  constructor(read: (slots: readonly string[]) => Promise<readonly (string | null)[]>) {
    this.#read = read;
  }

  /** Rejects when the reading of its batch does. */
  async get(slot: string): Promise<string | null> {
    const place = this.#places.get(slot) ?? this.#waiting.push(slot) - 1;
    this.#places.set(slot, place);
    this.#answer ??= new Promise<void>((resolve) => setImmediate(resolve)).then(() => this.#flush());
    return (await this.#answer)[place] ?? null;
  }

  #flush(): Promise<readonly (string | null)[]> {
    const slots = this.#waiting;
    this.#waiting = [];
    this.#places = new Map();
    this.#answer = undefined;
    return this.#read(slots);
  }
}

/** Keys in one MGET: a turn may ask for as many as there are requests in flight, and the arguments of a call are limited. */
const mostKeys = 1_000;

/** Slots as keys `<prefix>:mapping:<slot>` in Redis. `prefix` keeps deployments apart. */
export function createRedisSharedMapping(redis: Redis, prefix: string): SharedMapping {
  const keyOf = (slot: string) => `${prefix}:mapping:${slot}`;
  return {
    async read(slots) {
      const keys = slots.map(keyOf);
      // On a Cluster the keys are on many nodes; single GETs of one turn share a write to each.
      if (redis.kind === 'cluster')
        return textsOf(keys, await Promise.all(keys.map((key) => redis.command('GET', key))));
      const texts: (string | null)[] = [];
      for (let i = 0; i < keys.length; i += mostKeys) {
        const some = keys.slice(i, i + mostKeys);
        for (const text of textsOf(some, await redis.command('MGET', ...some))) texts.push(text);
      }
      return texts;
    },
    async write(slot, value, ttlMs) {
      await redis.command('SET', keyOf(slot), value, 'PX', Math.max(1, Math.floor(ttlMs)));
    },
  };
}

/** One value for each key, whatever the reply is. */
function textsOf(keys: readonly string[], reply: unknown): (string | null)[] {
  const values: readonly unknown[] = Array.isArray(reply) ? reply : [];
  return keys.map((_, i) => (typeof values[i] === 'string' ? values[i] : null));
}

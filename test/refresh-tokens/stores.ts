import { connectRedis } from '../../src/redis/connect-redis.ts';
import type { Redis } from '../../src/redis/redis.ts';
import { buildTokenScripts } from '../../src/refresh-tokens/lua.ts';
import { MemoryTokenStore, type TokenSteps } from '../../src/refresh-tokens/memory-store.ts';
import { RedisTokenStore } from '../../src/refresh-tokens/redis-store.ts';
import type { FamilyId } from '../../src/refresh-tokens/token-store.ts';
import { eventually } from '../harness/eventually.ts';
import { book, lifetimeMs, newToken, type Subject } from './store-contract.ts';

export function memorySubject(protocol?: TokenSteps): Subject {
  let nowMs = 1_700_000_000_000;
  const store = new MemoryTokenStore({
    lifetimeMs,
    retentionMs: 'keep',
    book,
    now: () => nowMs,
    ...(protocol && { protocol }),
  });
  return {
    stores: [store, store],
    pass: async (ms) => {
      nowMs += ms;
    },
  };
}

export async function connect(url: string, timeoutMs = 20_000): Promise<Redis> {
  const redis = connectRedis({ url, timeoutMs });
  await eventually('store', async () => (await redis.ready(1000).catch(() => false)) || undefined);
  return redis;
}

export interface RedisSubjectOptions {
  /** What is broken in the scripts on purpose. */
  readonly edit?: (lua: string, name: string) => string;
  readonly keyPrefix?: string;
}

/** Two stores with connections of their own, as two replicas have. Their scripts' clock is Redis' own, and what passes. */
export function redisSubject(
  [one, other]: readonly [Redis, Redis],
  { edit = (lua) => lua, keyPrefix }: RedisSubjectOptions = {},
): Subject {
  let passedMs = 0;
  const build = () => buildTokenScripts((lua, name) => shiftClock(edit(lua, name), passedMs));
  const scripts = { ...build() };
  const options = {
    lifetimeMs,
    retentionMs: 'keep',
    book,
    scripts,
    ...(keyPrefix && { keyPrefix }),
  } as const;
  return {
    stores: [
      new RedisTokenStore({ ...options, redis: one }),
      new RedisTokenStore({ ...options, redis: other }),
    ],
    pass: async (ms) => {
      passedMs += ms;
      Object.assign(scripts, build());
    },
  };
}

function shiftClock(lua: string, byMs: number): string {
  const [before, after, ...more] = lua.split(readClock);
  if (after === undefined || more.length > 0) throw new Error('a script that does not read the clock once');
  return `${before}${readClock} time[2] = tonumber(time[2]) + ${byMs * 1000}${after}`;
}

const readClock = "local time = redis.call('TIME')";

/** A store in memory with room for few records, a clock that moves by hand, and a way to fill it. */
export function openSmallStore(family: FamilyId, maxRecords: number, retentionMs: number | 'keep' = 'keep') {
  const clock = { nowMs: 1_000_000, evicted: 0, evictions: 0 };
  const store = new MemoryTokenStore({
    lifetimeMs: 1000,
    retentionMs,
    maxRecords,
    now: () => clock.nowMs,
    onEvict: (records) => {
      clock.evicted += records;
      clock.evictions += 1;
    },
  });
  const issue = (ms: number) => {
    const token = newToken();
    store.record(token, { subject: null, generation: 0, family, lifetimeMs: ms });
    return token;
  };
  return { store, clock, issue };
}

import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis } from '../../src/redis/connect-redis.ts';
import type { Redis } from '../../src/redis/redis.ts';
import { MemoryTokenStore, type TokenSteps } from '../../src/refresh-tokens/memory-token-store.ts';
import { RedisTokenStore } from '../../src/refresh-tokens/redis-token-store.ts';
import type { TokenScripts } from '../../src/refresh-tokens/token-scripts.ts';
import { until } from '../harness/redis-processes.ts';
import { lifetimeMs, type Subject } from './store-contract.ts';

export function memorySubject(protocol?: TokenSteps): Subject {
  let nowMs = 1_700_000_000_000;
  const store = new MemoryTokenStore({
    lifetimeMs,
    retentionMs: 'keep',
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

export async function connect(url: string, timeoutMs = 2000): Promise<Redis> {
  const redis = connectRedis({ url, timeoutMs });
  await until(async () => redis.ready(1000), 10_000);
  return redis;
}

/** Two stores with connections of their own, as two replicas have. */
export function redisSubject(
  [one, other]: readonly [Redis, Redis],
  scripts?: TokenScripts,
  keyPrefix?: string,
): Subject {
  const options = {
    lifetimeMs,
    retentionMs: 'keep',
    ...(scripts && { scripts }),
    ...(keyPrefix && { keyPrefix }),
  } as const;
  return {
    stores: [
      new RedisTokenStore({ ...options, redis: one }),
      new RedisTokenStore({ ...options, redis: other }),
    ],
    // The clock is Redis' own.
    pass: (ms) => sleep(ms),
  };
}

import { afterAll, beforeAll } from 'vitest';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { type SingleRedis, startRedis, until } from '../../harness/redis-processes.ts';

/** Starts a Redis for the tests of a file or of a `describe`, and stops it after them. Returns the connection. */
export function useRedis(): () => Redis {
  let server: SingleRedis;
  let redis: Redis;
  beforeAll(async () => {
    server = await startRedis({});
    redis = connectRedis({ url: server.url, timeoutMs: 20_000 });
    await until(async () => redis.ready(2000));
  });
  afterAll(async () => {
    await redis.close();
    await server.close();
  });
  return () => redis;
}

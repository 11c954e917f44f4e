import { connectRedis } from '../../../src/redis/connect-redis.ts';
import { RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import { defaultLifetimeMs, startTokenFront } from './token-front.ts';

/** Starts one of several replicas that share a Redis. */
export async function startReplica(
  upstream: { readonly port: number; readonly jwksUrl: string },
  redisUrl: string,
  times: { readonly answerWithinMs: number; readonly marginMs: number },
) {
  const redis = connectRedis({ url: redisUrl, timeoutMs: 20_000 });
  await redis.ready(60_000);
  const store = new RedisTokenStore({ redis, lifetimeMs: defaultLifetimeMs, retentionMs: 'keep' });
  const front = await startTokenFront(upstream, store, times);
  return {
    port: front.port,
    async close() {
      await front.close();
      await redis.close();
    },
  };
}

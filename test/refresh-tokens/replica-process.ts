/** A replica that can be killed: upstream port, JWKS and Redis come as arguments; prints its port. */
import { connectRedis } from '../../src/redis/connect-redis.ts';
import { RedisTokenStore } from '../../src/refresh-tokens/redis-store.ts';
import { defaultLifetimeMs, startTokenFront } from './token-front.ts';

const [, , port, jwksUrl = '', redisUrl = '', answerWithinMs, marginMs] = process.argv;
const redis = connectRedis({ url: redisUrl, timeoutMs: 20_000 });
await redis.ready(60_000);
const store = new RedisTokenStore({ redis, lifetimeMs: defaultLifetimeMs, retentionMs: 'keep' });
const front = await startTokenFront({ port: Number(port), jwksUrl }, store, {
  answerWithinMs: Number(answerWithinMs),
  marginMs: Number(marginMs),
});
process.stdout.write(`${front.port}\n`);

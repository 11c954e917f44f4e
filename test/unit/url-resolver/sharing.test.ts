import { expect, it } from 'vitest';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import { createRedisPurgeLog, keptPurges, PurgeFollower } from '../../../src/url-resolver/purges.ts';
import { useRedis } from '../entity-tags/connected-redis.ts';
import { createResolver, entityOf, resolve, targetOf } from './resolver-request.ts';
import { catalogue, useShop } from './shop.ts';

const shop = useShop({ '/en/acer': ['abstract-products', '134'] });
const redis = useRedis();

const idOf = async (resolver: ReturnType<typeof createResolver>) =>
  entityOf((await resolve(resolver, targetOf('/en/acer'))).body)[1];

it('the log of purges in Redis keeps the newest ones', async () => {
  const log = createRedisPurgeLog(redis(), 'test');
  const older = Array.from({ length: keptPurges }, (_, i) => `e${i} u:/${i}`);
  await redis().command('LPUSH', 'test:purges', ...older);
  await log.add('id u:/en/acer');
  expect(await redis().command('LLEN', 'test:purges')).toBe(keptPurges);
  expect(await log.read(0, 1)).toEqual(['id u:/en/acer', older.at(-1)]);
});

it('a longer entry than shopward makes is cut when it is read, and purges everything', async () => {
  const log = createRedisPurgeLog(redis(), 'test');
  const follower = new PurgeFollower(log, () => {});
  await follower.catchUp();
  const before = follower.purges.stampOf('/other');
  await redis().command('LPUSH', 'test:purges', `id u:/${'a'.repeat(1_000_000)}`);
  expect((await log.read(0, 0))[0]?.length).toBeLessThan(2_200);
  await follower.catchUp();
  expect(follower.purges.stampOf('/other')).toBeGreaterThan(before);
});

it('a purge is unavailable while Redis is away, and the entry is kept', async () => {
  const away = () => Promise.reject(new RedisUnavailable('connection'));
  const resolver = createResolver({ upstream: { ask: shop().ask }, purgeLog: { add: away, read: away } });
  await resolver.start();
  expect(await idOf(resolver)).toBe('134');
  expect([await resolver.purge('all'), await idOf(resolver)]).toEqual(['unavailable', '134']);
  expect(shop().requests.length).toBe(1);
  await resolver.close();
});

it('a purge works in a process without Redis', async () => {
  const resolver = createResolver({ upstream: { ask: shop().ask } });
  await resolver.start();
  expect(await idOf(resolver)).toBe('134');
  shop().handler = catalogue({ '/en/acer': ['abstract-products', '135'] });
  expect(await resolver.purge({ prefix: '/en' })).toBe('purged');
  expect(await idOf(resolver)).toBe('135');
  await resolver.close();
});

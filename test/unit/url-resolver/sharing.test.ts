import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import type { UrlResolver } from '../../../src/url-resolver/filter.ts';
import { createRedisPurgeLog, keptPurges } from '../../../src/url-resolver/purges.ts';
import { type SingleRedis, startRedis, until } from '../../harness/redis-processes.ts';
import { createResolver, entityOf, type ResolverSettings, resolve, targetOf } from './resolver-request.ts';
import { catalogue, type Shop, startShop } from './shop.ts';

let server: SingleRedis;
let shop: Shop;
let opened: (() => Promise<void>)[];
const acer = targetOf('/en/acer');
const before = { '/en/acer': ['abstract-products', '134'] } as const;
const after = { '/en/acer': ['abstract-products', '135'] } as const;

beforeAll(async () => {
  server = await startRedis({});
});
afterAll(() => server.close());
beforeEach(async () => {
  await server.process?.restart();
  shop = await startShop(catalogue(before));
  opened = [];
});
afterEach(async () => {
  for (const close of opened) await close();
  await shop.close();
});

interface Replica {
  readonly resolver: UrlResolver;
  readonly redis: Redis;
  /** The newest entry of the log at each of its reads. */
  readonly newest: (string | undefined)[];
}

async function startReplica(more: ResolverSettings = {}): Promise<Replica> {
  const redis = connectRedis({ url: server.url, timeoutMs: 20_000 });
  await redis.ready(60_000);
  const newest: Replica['newest'] = [];
  const log = createRedisPurgeLog(redis, 'test');
  const resolver = createResolver({
    upstream: { ask: shop.ask },
    purgeLog: {
      ...log,
      async read(first, last) {
        const entries = await log.read(first, last);
        if (first === 0 && last === 0) newest.push(entries[0]);
        return entries;
      },
    },
    ...more,
  });
  opened.push(async () => {
    await resolver.close();
    await redis.close();
  });
  await resolver.start();
  return { resolver, redis, newest };
}

async function idOf({ resolver }: Replica): Promise<string> {
  return entityOf((await resolve(resolver, acer)).body)[1];
}

/** Waits until the second replica has read the last purge twice. */
async function untilKnown({ redis }: Replica, { newest }: Replica): Promise<void> {
  const last = await redis.command('LINDEX', 'test:purges', 0);
  await until(async () => newest.at(-1) === last && newest.at(-2) === last);
}

describe('purge', () => {
  it('covers everything in a replica that has missed more purges than the log keeps', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    shop.handler = catalogue(after);
    await a.redis.command('LPUSH', 'test:purges', 'id u:/en/acer');
    const others = Array.from({ length: keptPurges }, (_, i) => `e${i} u:/${i}`);
    await a.redis.command('LPUSH', 'test:purges', ...others);
    expect(await a.resolver.purge({ url: '/other' })).toBe('purged');
    expect(await a.redis.command('LLEN', 'test:purges')).toBe(keptPurges);
    await untilKnown(a, b);
    expect([await idOf(a), await idOf(b)]).toEqual(['135', '135']);
  });

  it('a flushed Redis clears the caches of both replicas, and purges work again', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    await a.resolver.purge({ url: '/x' });
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    await a.redis.command('FLUSHALL');
    shop.handler = catalogue(after);
    for (const one of [a, b]) await until(async () => (await idOf(one)) === '135');
    shop.handler = catalogue(before);
    await a.resolver.purge({ url: '/en/acer' });
    await untilKnown(a, b);
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
  });

  it('is unavailable while Redis is down, and keeps the entry', async () => {
    const a = await startReplica();
    await idOf(a);
    await server.process?.kill();
    expect(await a.resolver.purge('all')).toBe('unavailable');
    expect(await idOf(a)).toBe('134');
    expect(shop.requests.length).toBe(1);
  });

  it('works in a process without Redis', async () => {
    const resolver = createResolver({ upstream: { ask: shop.ask } });
    await resolver.start();
    await resolve(resolver, acer);
    shop.handler = catalogue(after);
    expect(await resolver.purge({ prefix: '/en' })).toBe('purged');
    expect(entityOf((await resolve(resolver, acer)).body)[1]).toBe('135');
    await resolver.close();
  });
});

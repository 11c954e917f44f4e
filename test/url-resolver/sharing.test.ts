import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectRedis } from '../../src/redis/connect-redis.ts';
import type { Redis } from '../../src/redis/redis.ts';
import { createRedisEpochStore, maxScopes } from '../../src/url-resolver/purge-epochs.ts';
import type { UrlResolver } from '../../src/url-resolver/filter.ts';
import { createRedisSharedMapping } from '../../src/url-resolver/shared-cache.ts';
import { type SingleRedis, startRedis, until } from '../harness/redis-processes.ts';
import { type ResolverSettings, createResolver, entityOf, resolve, targetOf } from './resolver-request.ts';
import { type Shop, catalogue, sendMapping, startShop } from './shop.ts';

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
  /** Epoch of the last purge that it knew when it asked last. */
  readonly known: { last?: string };
}

async function startReplica(more: ResolverSettings = {}): Promise<Replica> {
  const redis = connectRedis({ url: server.url, timeoutMs: 20_000 });
  await redis.ready(60_000);
  const known: Replica['known'] = {};
  const epochs = createRedisEpochStore(redis, 'test');
  const resolver = createResolver({
    upstream: { ask: shop.ask },
    shared: {
      mappings: createRedisSharedMapping(redis, 'test'),
      epochs: {
        ...epochs,
        read(last) {
          known.last = last;
          return epochs.read(last);
        },
      },
      timeoutMs: 20_000,
    },
    ...more,
  });
  opened.push(async () => {
    await resolver.close();
    await redis.close();
  });
  await resolver.start();
  return { resolver, redis, known };
}

async function idOf({ resolver }: Replica): Promise<string> {
  return entityOf((await resolve(resolver, acer)).body)[1];
}

/** Waits until the copy has been written, which nobody waits for. */
async function untilShared({ redis }: Replica, count: number): Promise<void> {
  await until(async () => (await countKeys(redis)) === count);
}

/** Waits until `other` knows the last purge. */
async function untilKnown(one: Replica, other: Replica): Promise<void> {
  const last = await one.redis.command('HGET', 'test:epochs', 'last');
  await until(async () => other.known.last === last);
}

async function countKeys(redis: Redis): Promise<number> {
  return ((await redis.command('KEYS', 'test:mapping:*')) as string[]).length;
}

describe('shared copies', () => {
  it('what one replica asked, the other knows, found or not', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    await resolve(a.resolver, acer);
    await resolve(a.resolver, targetOf('/nothing'));
    await untilShared(a, 2);
    const answer = await resolve(b.resolver, acer);
    expect(answer.field('Cache-Status')).toMatch(/^shopward; hit; ttl=\d+; detail=shared$/);
    expect((await resolve(b.resolver, targetOf('/nothing'))).status).toBe(404);
    expect(shop.requests.length).toBe(2);
  });

  it('a stale copy bridges a shop that is down, in a process that has just started', async () => {
    let nowMs = Date.now();
    const now = () => nowMs;
    const clocks = { now, wallClock: now };
    const a = await startReplica(clocks);
    await resolve(a.resolver, acer);
    await untilShared(a, 1);
    await shop.close();
    const b = await startReplica(clocks);
    nowMs += 3_600_000;
    const answer = await resolve(b.resolver, acer);
    expect([answer.status, answer.field('Cache-Status')]).toEqual([
      200,
      'shopward; hit; ttl=-3300; detail=error',
    ]);
  });

  it('the store holds as many keys as there are slots, whatever is asked', async () => {
    const a = await startReplica({ maxEntries: 10 });
    for (let i = 0; i < 10; i += 1) {
      await Promise.all(Array.from({ length: 50 }, (_, k) => resolve(a.resolver, targetOf(`/${i}-${k}`))));
    }
    await until(async () => (await countKeys(a.redis)) > 30);
    expect(await countKeys(a.redis)).toBeLessThanOrEqual(40);
  });

  it('keys of one slot push each other out and are never taken for one another', async () => {
    const urls = Object.fromEntries(
      Array.from({ length: 20 }, (_, i) => [`/${i}`, ['merchants', `M${i}`] as const]),
    );
    shop.handler = catalogue(urls);
    const [a, b] = [await startReplica({ maxEntries: 1 }), await startReplica({ maxEntries: 1 })];
    for (const { resolver } of [a, b]) {
      for (let i = 0; i < 20; i += 1) {
        expect(entityOf((await resolve(resolver, targetOf(`/${i}`))).body)[1]).toBe(`M${i}`);
      }
    }
    expect(await countKeys(a.redis)).toBeLessThanOrEqual(4);
  });

  it.each([
    ['text', async (redis: Redis, key: string) => redis.command('SET', key, '{"a":')],
    [
      'another key',
      async (redis: Redis, key: string) => redis.command('SET', key, '[2,"x","merchants","M",1,"x"]'),
    ],
    [
      'another type of value',
      async (redis: Redis, key: string) => {
        await redis.command('DEL', key);
        return redis.command('LPUSH', key, 'x');
      },
    ],
  ])('a slot with %s is a miss', async (_, damage) => {
    const [a, b] = [await startReplica(), await startReplica()];
    await resolve(a.resolver, acer);
    await untilShared(a, 1);
    const [key] = (await a.redis.command('KEYS', 'test:mapping:*')) as [string];
    await damage(a.redis, key);
    expect(await idOf(b)).toBe('134');
    expect(shop.requests.length).toBe(2);
  });

  it('while the store is away, everything goes on without it; then it is used again', async () => {
    const a = await startReplica();
    await server.process?.kill();
    expect(await idOf(a)).toBe('134');
    expect((await resolve(a.resolver, targetOf('/x'))).status).toBe(404);
    await until(async () => a.redis.state().status === 'away');
    expect((await resolve(a.resolver, targetOf('/y'))).status).toBe(404);
    await server.process?.restart();
    await until(async () => a.redis.state().status === 'ready');
    await resolve(a.resolver, targetOf('/z'));
    await untilShared(a, 1);
  });
});

describe('purge', () => {
  it.each([
    ['the URL', { url: '/en/acer' }],
    ['a prefix', { prefix: '/en/' }],
    ['all', 'all'],
  ] as const)('%s reaches the other replica', async (_, purge) => {
    const [a, b] = [await startReplica(), await startReplica()];
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    shop.handler = catalogue(after);
    expect(await a.resolver.purge(purge)).toBe('purged');
    expect(await idOf(a)).toBe('135');
    await untilKnown(a, b);
    expect(await idOf(b)).toBe('135');
  });

  it('reaches every spelling that the shop takes for the URL, in every replica', async () => {
    const replicas = [await startReplica(), await startReplica()];
    const ids = (values: readonly string[]) =>
      Promise.all(
        replicas.flatMap(({ resolver }) =>
          values.map(async (value) => {
            return entityOf((await resolve(resolver, `/url-resolver?url=${value}`)).body)[1];
          }),
        ),
      );
    const one = ['/de/b%C3%BCcher-x', '/de/b%c3%bccher-x', '/DE/B%C3%9CCHER+X', '%2Fde/b%25C3%25BCcher%27x'];
    const others = ['/de/b%C3%BCcher-x/', '/de/buecher-x'];
    const give = (id: string) => {
      shop.handler = (_, response) => sendMapping(response, 'abstract-products', id);
    };
    give('134');
    expect(new Set(await ids([...one, ...others]))).toEqual(new Set(['134']));
    give('135');
    expect(await replicas[0]?.resolver.purge({ url: '/de/bücher-x' })).toBe('purged');
    await untilKnown(...(replicas as [Replica, Replica]));
    expect(new Set(await ids(one))).toEqual(new Set(['135']));
    expect(new Set(await ids(others))).toEqual(new Set(['134']));
  });

  it('covers everything once the store has as many scopes as it may', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    const fields = Array.from({ length: maxScopes }, (_, i) => [`u:/${i}`, `e${i}`]).flat();
    await a.redis.command('HSET', 'test:epochs', ...fields);
    shop.handler = catalogue(after);
    expect(await a.resolver.purge({ url: '/other' })).toBe('purged');
    expect(await a.redis.command('HLEN', 'test:epochs')).toBe(3);
    await untilKnown(a, b);
    expect([await idOf(a), await idOf(b)]).toEqual(['135', '135']);
  });

  it.each([
    ['another URL', { url: '/en/computer' }],
    ['another prefix', { prefix: '/de/' }],
  ] as const)('%s leaves the entry alone', async (_, purge) => {
    const a = await startReplica();
    await idOf(a);
    await a.resolver.purge(purge);
    shop.handler = catalogue(after);
    expect(await idOf(a)).toBe('134');
  });

  it('a lookup that was under way when a purge came is not kept', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    const held = Promise.withResolvers<void>();
    shop.handler = (_, response) =>
      void held.promise.then(() => sendMapping(response, 'abstract-products', '134'));
    const early = idOf(b);
    await until(async () => shop.requests.length === 1);
    shop.handler = catalogue(after);
    await a.resolver.purge({ url: '/en/acer' });
    await untilKnown(a, b);
    // It does not join the question from before the purge.
    expect(await idOf(b)).toBe('135');
    held.resolve();
    expect(await early).toBe('134');
    expect(await idOf(b)).toBe('135');
    expect(await idOf(a)).toBe('135');
    expect(await idOf(await startReplica())).toBe('135');
  });

  it('a lookup that another replica began before a purge leaves nothing in the store', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    const held = Promise.withResolvers<void>();
    shop.handler = (_, response) =>
      void held.promise.then(() => sendMapping(response, 'abstract-products', '134'));
    const early = idOf(b);
    await until(async () => shop.requests.length === 1);
    await a.resolver.purge('all');
    await untilKnown(a, b);
    held.resolve();
    await early;
    expect(b.resolver.stats()).toMatchObject({ entries: 0 });
    shop.handler = catalogue(after);
    expect(await idOf(await startReplica())).toBe('135');
  });

  it('is caught up after a lost connection', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    shop.handler = catalogue(after);
    await a.redis.command('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => {});
    await a.resolver.purge({ url: '/en/acer' });
    await untilKnown(a, b);
    expect(await idOf(b)).toBe('135');
  });

  it('an emptied store makes every replica forget once, and purges work again', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    await a.resolver.purge({ url: '/x' });
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    await a.redis.command('FLUSHALL');
    shop.handler = catalogue(after);
    await until(async () => a.resolver.stats().entries + b.resolver.stats().entries === 0);
    expect([await idOf(a), await idOf(b)]).toEqual(['135', '135']);
    shop.handler = catalogue(before);
    await a.resolver.purge({ url: '/en/acer' });
    await untilKnown(a, b);
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
  });

  it('is refused while the store is away, and changes nothing', async () => {
    const a = await startReplica();
    await idOf(a);
    await server.process?.kill();
    expect(await a.resolver.purge('all')).toBe('unavailable');
    expect(await idOf(a)).toBe('134');
    expect(shop.requests.length).toBe(1);
  });

  it('works in a process that stands alone', async () => {
    const resolver = createResolver({ upstream: { ask: shop.ask } });
    await resolver.start();
    await resolve(resolver, acer);
    shop.handler = catalogue(after);
    expect(await resolver.purge({ prefix: '/en' })).toBe('purged');
    expect(entityOf((await resolve(resolver, acer)).body)[1]).toBe('135');
    await resolver.close();
  });
});

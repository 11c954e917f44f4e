import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import type { Redis } from '../../../src/redis/redis.ts';
import { createRedisPurgeLog, keptPurges } from '../../../src/url-resolver/purges.ts';
import type { UrlResolver } from '../../../src/url-resolver/filter.ts';
import { type SingleRedis, startRedis, until } from '../../harness/redis-processes.ts';
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
  it.each([
    ['the URL', { url: '/en/acer' }],
    ['a prefix', { prefix: '/en/' }],
    ['all', 'all'],
  ] as const)('of %s reaches the other replica', async (_, purge) => {
    const [a, b] = [await startReplica(), await startReplica()];
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    shop.handler = catalogue(after);
    expect(await a.resolver.purge(purge)).toBe('purged');
    expect(await idOf(a)).toBe('135');
    await untilKnown(a, b);
    expect(await idOf(b)).toBe('135');
  });

  it('of a URL covers every spelling that the shop reads as this URL, in both replicas', async () => {
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

  it('works again after Redis was restarted; meanwhile the resolver answers', async () => {
    const a = await startReplica();
    await server.process?.kill();
    expect(await idOf(a)).toBe('134');
    await until(async () => a.redis.state().status === 'away');
    expect((await resolve(a.resolver, targetOf('/y'))).status).toBe(404);
    await server.process?.restart();
    await until(async () => a.redis.state().status === 'ready');
    shop.handler = catalogue(after);
    expect(await a.resolver.purge({ url: '/en/acer' })).toBe('purged');
    expect(await idOf(a)).toBe('135');
  });

  it.each([
    ['another URL', { url: '/en/computer' }],
    ['another prefix', { prefix: '/de/' }],
  ] as const)('of %s keeps the entry', async (_, purge) => {
    const a = await startReplica();
    await idOf(a);
    await a.resolver.purge(purge);
    shop.handler = catalogue(after);
    expect(await idOf(a)).toBe('134');
  });

  it('during a look-up: its answer is not kept, and later requests do not join it', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    const held = Promise.withResolvers<void>();
    shop.handler = (_, response) =>
      void held.promise.then(() => sendMapping(response, 'abstract-products', '134'));
    const early = idOf(b);
    await until(async () => shop.requests.length === 1);
    shop.handler = catalogue(after);
    await a.resolver.purge({ url: '/en/acer' });
    await untilKnown(a, b);
    // This request does not join the look-up from before the purge.
    expect(await idOf(b)).toBe('135');
    held.resolve();
    expect(await early).toBe('134');
    expect(await idOf(b)).toBe('135');
    expect(await idOf(a)).toBe('135');
    expect(await idOf(await startReplica())).toBe('135');
  });

  it('during a look-up of another replica: its answer is not kept there', async () => {
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

  it('reaches the other replica after all connections were killed', async () => {
    const [a, b] = [await startReplica(), await startReplica()];
    expect([await idOf(a), await idOf(b)]).toEqual(['134', '134']);
    shop.handler = catalogue(after);
    await a.redis.command('CLIENT', 'KILL', 'TYPE', 'normal').catch(() => {});
    await until(async () => (await a.resolver.purge({ url: '/en/acer' })) === 'purged');
    await untilKnown(a, b);
    expect(await idOf(b)).toBe('135');
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

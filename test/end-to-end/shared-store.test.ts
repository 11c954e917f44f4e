import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { randomTag } from '../../src/entity-tags/keys.ts';
import { ageRedis } from '../harness/aged-redis.ts';
import { begun } from '../harness/begun.ts';
import { eventually } from '../harness/eventually.ts';
import { listen } from '../harness/listen.ts';
import type { RawResponse } from '../harness/raw-response.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { callShop, outcomeOf } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { type HereOptions, startShopwardHere } from '../harness/shopward-here.ts';

type CarelessShop = Awaited<ReturnType<typeof startCarelessShop>>;

/** A shop that accepts every exchange, and keeps a name and a number of each path, whose last write wins. */
async function startCarelessShop() {
  const shop = {
    ...{ name: 'first', patchMs: 0 },
    /** Number of PATCH requests received, answered or not. */
    patches: 0,
    /** Names in the order in which they were written, and bodies of the exchange requests. */
    ...{ writes: [] as string[], exchanges: [] as string[] },
    /** The number `n` that was last written to each path. */
    counts: new Map<string, number>(),
  };
  const server: Server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const path = request.url ?? '';
    const send = (status: number, attributes: object) => {
      response.writeHead(status, { 'Content-Type': 'application/vnd.api+json' });
      const data = { type: 'carts', id: '1', attributes };
      response.end(JSON.stringify({ data, n: shop.counts.get(path) ?? 0 }));
    };
    if (request.method === 'POST') {
      shop.exchanges.push(text);
      return send(201, { refreshToken: `next-${shop.exchanges.length}`, expiresIn: 600 });
    }
    if (request.method === 'PATCH') {
      shop.patches += 1;
      const { data, n } = JSON.parse(text);
      await sleep(shop.patchMs);
      if (n !== undefined) shop.counts.set(path, n);
      else {
        shop.name = data.attributes.name;
        shop.writes.push(shop.name);
      }
    }
    return send(200, { name: shop.name });
  });
  return Object.assign(shop, await listen(server));
}

/** The shop, the Redis and the proxies of one case. */
interface Stage {
  readonly redis: RedisProcess;
  readonly direct: Redis;
  readonly shop: CarelessShop;
  /** Starts a proxy with these settings, merged into those that the replicas share. */
  start(config: object, options?: Partial<HereOptions>): Promise<RunningShopward>;
  /** The options that `start` uses. */
  settings(config: object): HereOptions;
}

/** Each case has its own stage, because cases run concurrently: most of their time is waiting. */
function staged(play: (stage: Stage) => Promise<void>): () => Promise<void> {
  return async () => {
    const [redis, shop] = await Promise.all([
      startRedisProcess({ settings: { 'enable-debug-command': 'yes' } }),
      startCarelessShop(),
    ]);
    const direct = new Redis({ port: redis.port, host: '127.0.0.1', retryStrategy: () => 50 });
    direct.on('error', () => {});
    const running: RunningShopward[] = [];
    const settings: Stage['settings'] = (config) => ({ upstream: shop.url, config: sharing(redis, config) });
    const start: Stage['start'] = async (config, options) => {
      const one = await startShopwardHere({ ...settings(config), ...options });
      running.push(one);
      return one;
    };
    try {
      await play({ redis, direct, shop, start, settings });
    } finally {
      for (const each of running) await each.stop();
      direct.disconnect();
      shop.close();
      await redis.close();
    }
  };
}

function sharing(redis: RedisProcess, config: object): object {
  return {
    store: {
      url: `redis://127.0.0.1:${redis.port}`,
      timeout: '2s',
      ...('store' in config ? (config.store as object) : {}),
    },
    entityTags: {
      lease: '5s',
      sendBy: '2s',
      wait: '1s',
      ...('entityTags' in config ? (config.entityTags as object) : {}),
    },
    ...('refreshTokens' in config ? { refreshTokens: config.refreshTokens } : {}),
  };
}

const read = (one: RunningShopward) => callShop(one.port, 'GET /carts/1', { token: one.issueToken() });
const aTag = (one: RunningShopward) => eventually('a tag', async () => (await read(one)).field('etag'));
const patch = (one: RunningShopward, ifMatch: string, name: string) =>
  callShop(one.port, 'PATCH /carts/1', {
    token: one.issueToken(),
    ifMatch,
    body: { data: { type: 'carts', id: '1', attributes: { name } } },
  });
const exchange = (one: RunningShopward, refreshToken: string) =>
  callShop(one.port, 'POST /refresh-tokens', {
    body: { data: { type: 'refresh-tokens', attributes: { refreshToken } } },
  });
const readiness = async (one: RunningShopward) =>
  (await fetch(`${one.adminUrl}/readyz`)).json() as Promise<{ ready: boolean; reasons: string[] }>;
const reasonsOf = async (one: RunningShopward) => (await readiness(one)).reasons.join('\n');
const metricsOf = async (one: RunningShopward) => (await fetch(`${one.adminUrl}/metrics`)).text();

describe.concurrent('a rolling change of what replicas must share', () => {
  it(
    'entityTags.lease, while Redis loses its data: no update is lost',
    staged(async ({ redis, direct, shop, start }) => {
      await ageRedis(redis.port);
      const old = await start({ entityTags: { lease: '13s' } });
      const next = await start({ entityTags: { lease: '5s' } });
      const tag = await aTag(next);
      await eventually(
        'the reason at /readyz',
        async () => (await reasonsOf(next)).includes('lease differs') || undefined,
      );
      // Longer than the lease of `next`: a tag handed out after only that lease would be too early.
      shop.patchMs = 8_500;
      const atShop = () => shop.patches === 1 || undefined;
      let slow: ReturnType<typeof patch>;
      // Repeats if a slow machine caused a refusal.
      do {
        slow = begun(patch(old, tag, 'slow'));
        await Promise.race([slow, begun(eventually('it at the shop', atShop))]);
      } while (!atShop());
      shop.patchMs = 0;
      await direct.flushall();
      // A client that reads until it has a tag, then writes at once.
      const quick = await aTag(next);
      expect(outcomeOf(await patch(next, quick, 'quick'))).toBe('200');
      expect((await slow).status).toBe(200);
      // In the other order, the slow write, based on the older state, would overwrite the quick one.
      expect(shop.writes).toEqual(['slow', 'quick']);
    }),
  );

  it(
    'entityTags.resources: a replica hands out no tag for a resource that another does not track, until that one has ended',
    staged(async ({ redis, start }) => {
      await ageRedis(redis.port);
      const other = [{ collection: '/wishlists', member: '/wishlists/{id}' }];
      const old = await start({ entityTags: { resources: other } });
      const next = await start({});
      expect((await read(next)).field('etag')).toBe(undefined);
      expect(outcomeOf(await patch(next, `"${randomTag()}"`, 'x'))).toBe('503 tag-store-unavailable');
      expect(await reasonsOf(next)).toContain('does not track');
      await old.stop();
      await aTag(next);
    }),
  );

  const carts = { collection: '/carts', member: '/carts/{cart_id}' };
  it.each<[string, object, object, (next: RunningShopward, tag: string) => Promise<RawResponse>]>([
    [
      'one fewer',
      carts,
      { collection: '/wishlists', member: '/wishlists/{id}' },
      (next, tag) => patch(next, tag, 'next'),
    ],
    [
      'batch removed',
      { ...carts, batch: 'guarded' },
      carts,
      (next) => callShop(next.port, 'POST /carts', { token: next.issueToken(), body: {} }),
    ],
  ])(
    'entityTags.resources, %s: an old replica refuses writes after a write through the new one',
    (_, before, after, write) =>
      staged(async ({ redis, start }) => {
        await ageRedis(redis.port);
        const old = await start({ entityTags: { resources: [before] } });
        const tag = await aTag(old);
        const next = await start({ entityTags: { resources: [after] } });
        expect((await write(next, tag)).status).toBeLessThan(300);
        expect(outcomeOf(await patch(old, tag, 'old'))).toBe('503 tag-store-unavailable');
      })(),
  );

  it(
    'entityTags.resources: a new entry in one process stops only writes to that resource',
    staged(async ({ redis, shop, start }) => {
      await ageRedis(redis.port);
      const lists = { collection: '/lists', member: '/lists/{id}' };
      // Long, so that a busy machine causes no refusal.
      const times = { lease: '60s', sendBy: '20s', wait: '10s' };
      const old = await start({ entityTags: { ...times, resources: [carts] } });
      const next = await start({ entityTags: { ...times, resources: [carts, lists] } });
      await eventually('tags at both', async () => (await aTag(old)) && (await aTag(next)));
      // Adds one to the number that it has read.
      const outcomes = new Map<string, number>();
      const add = async (one: RunningShopward, path: string) => {
        const token = one.issueToken();
        const read = await callShop(one.port, `GET ${path}`, { token });
        const ifMatch = read.field('etag') ?? `"${randomTag()}"`;
        const body = { n: JSON.parse(read.body.toString()).n + 1 };
        const outcome = outcomeOf(await callShop(one.port, `PATCH ${path}`, { token, ifMatch, body }));
        const key = `${one === next ? 'next' : 'old'} ${path} ${outcome}`;
        outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
      };
      const client = async (i: number) => {
        for (let n = 0; n < 25; n += 1) await add(i % 2 === 0 ? old : next, `/carts/${(i % 3) + 1}`);
      };
      const untracked = async () => {
        for (let n = 0; n < 25; n += 1) await add(next, '/lists/1');
      };
      await Promise.all([...Array.from({ length: 6 }, (_, i) => client(i)), untracked()]);
      const count = (pattern: RegExp) =>
        [...outcomes].reduce((sum, [key, n]) => sum + (pattern.test(key) ? n : 0), 0);
      expect([...outcomes.keys()].filter((key) => !/ (?:200|412 006|503 resource-busy)$/.test(key))).toEqual([
        'next /lists/1 503 tag-store-unavailable',
      ]);
      for (const path of ['/carts/1', '/carts/2', '/carts/3'])
        expect(shop.counts.get(path)).toBe(count(new RegExp(`${path} 200$`)));
      expect(shop.counts.get('/lists/1')).toBeUndefined();
    }),
  );

  it(
    'versions with different forms of records: an upgrade and a rollback refuse no write and lose none',
    staged(async ({ redis, direct, shop, start: startOne }) => {
      await ageRedis(redis.port);
      const older = { version: '1.0.0', forms: { oldest: 6, newest: 6 } };
      const newer = { version: '2.0.0', forms: { oldest: 6, newest: 7 } };
      const resources = [{ collection: '/carts', member: '/carts/{id}' }];
      // Long, so that a busy machine causes no refusal.
      const times = { lease: '60s', sendBy: '20s', wait: '10s', resources };
      const start = (runs: typeof older) =>
        startOne({ store: { timeout: '5s' }, entityTags: times }, { runs });
      const outcomes = new Map<string, number>();
      const live: RunningShopward[] = [];
      let [rounds, requests] = [0, 0];
      /** Adds one to the number that it has read; each request goes to the next process. */
      const add = async (path: string) => {
        const call = (method: string, more: object) => {
          const one = live[requests++ % live.length] as RunningShopward;
          return callShop(one.port, `${method} ${path}`, { token: one.issueToken({ sub: path }), ...more });
        };
        let read = await call('GET', {});
        // A read that may have begun before the last write gets no tag.
        for (let n = 0; n < 5 && read.field('etag') === undefined; n += 1) read = await call('GET', {});
        const body = { n: JSON.parse(read.body.toString()).n + 1 };
        const ifMatch = read.field('etag') ?? `"${randomTag()}"`;
        const written = await call('PATCH', { ifMatch, body });
        const key = `${path} ${outcomeOf(written)}`;
        outcomes.set(key, (outcomes.get(key) ?? 0) + 1);
        rounds += 1;
      };
      let isOver = false;
      const client = async (path: string) => {
        while (!isOver) await add(path);
      };
      const someRounds = async () => {
        const until = rounds + 20;
        await eventually('more rounds', () => rounds >= until || undefined);
      };
      /** Replaces one process after the other. */
      const roll = async (runs: typeof older) => {
        for (const old of [...live]) {
          live.push(await start(runs));
          await someRounds();
          live.splice(live.indexOf(old), 1);
          await someRounds();
          await old.stop();
        }
      };
      /** The forms of the records. */
      const forms = async () => {
        const keys = (await direct.keys('shopward:{tags-0}:*')).filter((key) => !key.endsWith(':epoch'));
        const texts = await Promise.all(keys.map((key) => direct.hget(key, 'e')));
        return [...new Set(texts.map((text) => text?.split(/[/:]/)[1]))].join();
      };
      const forgetOlder = async (seenMs: number) => {
        const members = 'shopward:{members}';
        for (const [id, text] of Object.entries(await direct.hgetall(members)))
          if (text.includes('"1.0.0"')) await direct.hdel(members, id);
        await direct.hset(`${members}:marker`, 'formSeen', seenMs);
      };
      const [own, shared] = [['/carts/1', '/carts/2', '/carts/3'], '/carts/shared'];
      const [first, second] = [await start(older), await start(older)];
      await eventually('tags at both', async () => (await aTag(first)) && (await aTag(second)));
      live.push(first, second);
      const clients = begun(Promise.all([...own, shared, shared].map(client)));
      await roll(newer);
      // As if the last older process had just been forgotten.
      await forgetOlder(Date.now());
      await someRounds();
      await roll(older);
      await roll(newer);
      expect(await forms()).toBe('6');
      // As if it had ended more than a day ago.
      await forgetOlder(1);
      await eventually('the newer form', async () => (await forms()).includes('7') || undefined);
      await someRounds();
      const tooLate = await start(older);
      expect(await reasonsOf(tooLate)).toContain(
        'another version of shopward shares this store: 2.0.0, and this is 1.0.0',
      );
      expect(outcomeOf(await patch(tooLate, `"${randomTag()}"`, 'x'))).toBe('503 tag-store-unavailable');
      await someRounds();
      isOver = true;
      await clients;
      for (const path of own)
        expect([...outcomes.keys()].filter((key) => key.startsWith(path))).toEqual([`${path} 200`]);
      expect([...outcomes.keys()].filter((key) => !/ (?:200|412 006|503 resource-busy)$/.test(key))).toEqual(
        [],
      );
      for (const path of [...own, shared]) expect(shop.counts.get(path)).toBe(outcomes.get(`${path} 200`));
    }),
  );

  it(
    'refreshTokens.digestKey: no token is exchanged through both replicas',
    staged(async ({ shop, start }) => {
      const old = await start({ refreshTokens: { digestKey: 'the first key of digests' } });
      const next = await start({ refreshTokens: { digestKey: 'the second key of digests' } });
      for (const token of ['one', 'two', 'three']) {
        const [at, and] = await Promise.all([exchange(next, token), exchange(old, token)]);
        expect([outcomeOf(at), and.status]).toEqual(['503 token-store-unavailable', 201]);
        expect(outcomeOf(await exchange(next, token))).toBe('503 token-store-unavailable');
      }
      expect(shop.exchanges.length).toBe(3);
      expect(await reasonsOf(next)).toContain('refreshTokens.digestKey');
      expect(await metricsOf(next)).toMatch(/^shopward_store_disagreements 1$/m);
      await old.stop();
      await eventually('an exchange', async () => (await exchange(next, 'four')).status === 201 || undefined);
    }),
  );
});

describe.concurrent('a store that fills up', () => {
  it(
    'is reported at more than 80%, before it is full',
    staged(async ({ direct, start }) => {
      const one = await start({});
      expect(await reasonsOf(one)).not.toContain('full');
      // A large key, so that memory that Redis frees from client buffers does not matter.
      await direct.setrange('filler', 16_000_000, 'x');
      const used = Number(/used_memory:(\d+)/.exec(await direct.info('memory'))?.[1]);
      await direct.config('SET', 'maxmemory', String(Math.ceil(used / 0.87)));
      const isFull = async () =>
        /Redis is 8\d% full; when it is full/.test(await reasonsOf(one)) || undefined;
      await eventually('the reason', isFull);
      const metrics = await metricsOf(one);
      expect(metrics).toMatch(/^shopward_store_memory_used_bytes [1-9]/m);
      expect(metrics).toMatch(/^shopward_store_memory_max_bytes [1-9]/m);
    }),
  );
});

const coldStart = (lose: (direct: Redis) => Promise<unknown>) =>
  staged(async ({ redis, direct, start }) => {
    await ageRedis(redis.port);
    // The cold start lasts one lease: long enough for all questions of this test.
    const one = await start({ entityTags: { lease: '12s' } });
    await aTag(one);
    expect(await reasonsOf(one)).toBe('');
    // No request is sent until the reason is reported.
    await lose(direct);
    const reason = await eventually('the reason at /readyz', async () => {
      const all = await reasonsOf(one);
      return all.includes('Redis is new, ') ? all : undefined;
    });
    expect(reason).toMatch(/no tag is handed out yet and tracked writes get 503, for [1-9]\d* s more/);
    expect(await metricsOf(one)).toMatch(/^shopward_entity_tags_hold_seconds [1-9]/m);
    await one.waitForLog(({ event }) => event === 'hold');
    const refused = await patch(one, `"${randomTag()}"`, 'x');
    expect(outcomeOf(refused)).toBe('503 tag-store-unavailable');
    expect(Number(refused.field('retry-after'))).toBeGreaterThan(0);
    await eventually('its end', async () => ((await reasonsOf(one)) === '' ? true : undefined));
    await aTag(one);
  });

describe.concurrent('a cold start is reported with the remaining time', () => {
  it(
    'when the replication id changes on a living primary',
    coldStart((direct) => direct.call('DEBUG', 'CHANGE-REPL-ID')),
  );

  it(
    'after FLUSHALL',
    coldStart((direct) => direct.flushall()),
  );
});

describe.concurrent('several shops on one Redis', () => {
  it(
    'with one prefix: the second shop reports it',
    staged(async ({ shop, start }) => {
      await start({});
      const elsewhere = await startCarelessShop();
      const other = await start({}, { upstream: elsewhere.url });
      expect(await reasonsOf(other)).toContain(`another shop uses store.prefix: "${shop.url}"`);
      elsewhere.close();
    }),
  );

  it(
    'with a prefix for each shop: no key is shared',
    staged(async ({ direct, start }) => {
      const one = await start({ store: { prefix: 'one' } });
      const two = await start({ store: { prefix: 'two' } });
      for (const each of [one, two]) {
        await aTag(each);
        expect((await exchange(each, 'token')).status).toBe(201);
        await fetch(`${each.adminUrl}/api/purge`, {
          method: 'POST',
          body: '{"all":true}',
          headers: { 'Content-Type': 'application/json' },
        });
      }
      expect((await exchange(one, 'token')).status).toBe(401);
      const keys = await direct.keys('*');
      expect(keys.filter((key) => !/^(one|two):/.test(key))).toEqual([]);
      for (const prefix of ['one', 'two']) {
        expect(keys.filter((key) => key.startsWith(`${prefix}:`)).length).toBeGreaterThan(4);
        expect(keys.some((key) => key.startsWith(`${prefix}:{tags-0}`))).toBe(true);
      }
    }),
  );
});

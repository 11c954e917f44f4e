import { describe, expect, it, type TestContext } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { startDemoShop } from '../../demo/shop.ts';
import { ageRedis } from '../harness/aged-redis.ts';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { callShop, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import { startShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

const cart = `/carts/${cartIds.everyday}`;
const body = { data: { type: 'carts', attributes: { name: 'Patched' } } };
const item = { data: { type: 'items', attributes: { sku: '134_29759322', quantity: 1 } } };

/** Two replicas, a Redis and a shop for each test. The tests run at once, because most of their time is waiting for a lease. */
async function stage(context: TestContext) {
  const open = closingAtEnd(context);
  const redis = open(await startRedisProcess());
  await ageRedis(redis.port);
  const shop = open(await startDemoShop());
  const settings = {
    upstream: shop.url,
    config: {
      auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
      store: { url: `redis://127.0.0.1:${redis.port}`, timeout: '2s' },
      entityTags: { lease: '8s', sendBy: '4s', wait: '8s' },
    },
  };
  const replicas = await Promise.all([1, 2].map(() => startShopwardHere(settings)));
  for (const replica of replicas) open({ close: () => replica.stop() });
  const token = await shop.issueToken();
  const call = (replica: number, line: string, options: ShopCall = {}) =>
    callShop(replicas[replica]?.port ?? 0, line, { token, ...options });
  const aTag = () => eventually('a tag', async () => (await call(0, `GET ${cart}`)).field('etag'));
  const patch = (replica: number, ifMatch: string) => call(replica, `PATCH ${cart}`, { ifMatch, body });
  const tag = await aTag();
  shop.received.clear();
  return { open, redis, shop, settings, token, call, aTag, patch, tag };
}

describe.concurrent('two replicas over one Redis', () => {
  it('a write of a killed replica blocks its cart for no longer than the lease', async (context) => {
    const { open, shop, settings, token, call, patch, tag } = await stage(context);
    const killed = await startShopward(settings);
    open({ close: () => killed.kill() });
    // The shop still works on the write when the process is killed.
    shop.settings.latencyMs = 30_000;
    const cut = callShop(killed.port, `PATCH ${cart}`, { token, ifMatch: tag, body }).catch(() => 'cut');
    await eventually(
      'the write at the shop',
      () => shop.received.requests.some(({ method }) => method === 'PATCH') || undefined,
    );
    await killed.kill();
    expect(await cut).toBe('cut');
    shop.settings.latencyMs = 0;
    // The outcome of the write is unknown, so its tag is refused and a later read gets a new one.
    const next = await eventually('a new tag', async () => (await call(1, `GET ${cart}`)).field('etag'));
    const after = await eventually('the end of the lease', async () => {
      const given = (await call(1, `GET ${cart}`)).field('etag');
      return given !== undefined && given !== tag ? given : undefined;
    });
    expect([tag, after]).toContain(next);
    expect(outcomeOf(await patch(1, tag))).toBe('412 006');
    expect((await patch(1, after)).status).toBe(200);
  });

  it('a tag of one replica is accepted by the other, and refused after a change through either', async (context) => {
    const { call, patch, tag } = await stage(context);
    expect((await call(1, `GET ${cart}`)).field('etag')).toBe(tag);
    const changed = await patch(0, tag);
    expect(changed.status).toBe(200);
    expect(outcomeOf(await patch(1, tag))).toBe('412 006');
    expect((await patch(1, changed.field('etag') ?? '')).status).toBe(200);
  });

  it('of twenty writes with one tag exactly one reaches the shop', async (context) => {
    const { shop, patch, tag } = await stage(context);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async (_, i) => outcomeOf(await patch(i % 2, tag))),
    );
    expect(outcomes.sort()).toEqual(['200', ...Array.from({ length: 19 }, () => '412 006')]);
    expect(shop.received.byRoute.get('PATCH /carts/{id}')).toBe(1);
  });
});

describe.concurrent('without Redis reads have no tag, tracked writes are 503, other requests pass; afterwards tags return', () => {
  it.for<[string, (redis: RedisProcess) => unknown, (redis: RedisProcess) => unknown]>([
    ['has gone', (redis) => redis.kill(), (redis) => redis.restart()],
    ['does not answer', (redis) => redis.pause(), (redis) => redis.resume()],
  ])('Redis %s', async ([, leave, comeBack], context) => {
    const { redis, shop, call, aTag, patch, tag } = await stage(context);
    await leave(redis);
    shop.received.clear();
    const read = await call(0, `GET ${cart}`);
    expect([read.status, read.field('etag')]).toEqual([200, undefined]);
    expect((await call(0, 'GET /orders')).status).toBe(200);
    expect((await call(0, 'POST /wishlists', { body: wishlist })).status).toBe(201);
    expect((await call(0, `PATCH ${cart}`, { body })).status).toBe(428);
    const before = shop.received.total;
    const writes = [
      () => patch(0, tag),
      () => call(0, `DELETE ${cart}`, { ifMatch: tag }),
      () => call(0, `POST ${cart}/items`, { body: item }),
      () => call(0, `POST ${cart}/vouchers`, { body: item }),
    ];
    for (const response of await Promise.all(writes.map((write) => write()))) {
      expect(outcomeOf(response)).toBe('503 tag-store-unavailable');
      expect(response.field('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    expect(shop.received.total).toBe(before);

    await comeBack(redis);
    const next = await aTag();
    await eventually('a change', async () => ((await patch(0, next)).status === 200 ? true : undefined));
  });
});

const wishlist = { data: { type: 'wishlists', attributes: { name: 'Meanwhile' } } };

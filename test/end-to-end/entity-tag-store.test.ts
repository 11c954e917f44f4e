import { describe, expect, it, type TestContext } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { startDemoShop } from '../../demo/shop.ts';
import { ageRedis } from '../harness/aged-redis.ts';
import { closingAtEnd } from '../harness/closing-at-end.ts';
import { eventually } from '../harness/eventually.ts';
import { startRedisProcess } from '../harness/redis-server.ts';
import { callShop, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import { startShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

const cart = `/carts/${cartIds.everyday}`;
const body = { data: { type: 'carts', attributes: { name: 'Patched' } } };

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
  const patch = (replica: number, ifMatch: string) => call(replica, `PATCH ${cart}`, { ifMatch, body });
  const tag = await eventually('a tag', async () => (await call(0, `GET ${cart}`)).field('etag'));
  shop.received.clear();
  return { open, shop, settings, token, call, patch, tag };
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
});

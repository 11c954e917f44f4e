import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { ageRedis } from '../harness/aged-redis.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { callShop, jsonOf, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

const cart = `/carts/${cartIds.everyday}`;
const rename = (name: string) => ({ data: { type: 'carts', attributes: { name } } });
const newCart = {
  data: { type: 'carts', attributes: { name: 'New', priceMode: 'GROSS_MODE', currency: 'EUR', store: 'DE' } },
};
const item = { data: { type: 'items', attributes: { sku: '134_29759322', quantity: 1 } } };
const aTag = /^"[0-9a-f]{32}\.[0-9a-f]{1,24}"$/;

/** The ETag tables of the contract, through the whole proxy, with a shop that checks no tags and with one that does. */
describe.each([
  ['memory', false],
  ['redis', false],
  ['memory', true],
  ['redis', true],
])('entity tags over %s; the shop enforces its own: %s', (kind, enforceTags) => {
  let redis: RedisProcess | undefined;
  let shop: DemoShop;
  let shopward: RunningShopward;
  let token: string;

  beforeAll(async () => {
    redis = kind === 'redis' ? await startRedisProcess() : undefined;
    if (redis !== undefined) await ageRedis(redis.port);
    shop = await startDemoShop({ enforceTags, tagMethods: ['PATCH', 'DELETE'] });
    shopward = await startShopwardHere({
      upstream: shop.url,
      config: {
        auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
        store: { url: redis === undefined ? 'memory' : `redis://127.0.0.1:${redis.port}` },
      },
    });
    token = await shop.issueToken();
  });
  afterAll(async () => {
    await shopward?.stop();
    await shop?.close();
    await redis?.close();
  });
  beforeEach(() => shop.received.clear());

  const call = (line: string, options: ShopCall = {}) => callShop(shopward.port, line, { token, ...options });
  const tagOf = async (path = cart) => {
    const response = await call(`GET ${path}`);
    expect([response.status, response.field('etag')]).toEqual([200, expect.stringMatching(aTag)]);
    return response.field('etag') ?? '';
  };
  const patch = (ifMatch: ShopCall['ifMatch'], path = cart, body: object = rename('Patched')) =>
    call(`PATCH ${path}`, { ifMatch, body });

  it('two GETs deliver one tag, and a 404 to HEAD has none', async () => {
    const tag = await tagOf();
    const first = await call(`GET ${cart}`);
    expect(first.fields('etag')).toEqual([tag]);
    // The demo shop has no route for HEAD.
    const head = await call(`HEAD ${cart}`);
    expect([head.status, head.field('etag')]).toEqual([404, undefined]);
  });

  it.each([
    ['TAG', 304],
    ['W/TAG', 304],
    ['"a,b", TAG', 304],
    ['*', 304],
    ['"other"', 200],
    ['"', 200],
  ])('If-None-Match: %s gives %i', async (value, status) => {
    const tag = await tagOf();
    const response = await call(`GET ${cart}`, { ifNoneMatch: value.replace('TAG', tag) });
    expect([response.status, response.field('etag')]).toEqual([status, tag]);
    if (status === 304) expect(response.body).toHaveLength(0);
  });

  it.each(['PATCH', 'DELETE'])('%s without If-Match is 428 005, and not forwarded', async (method) => {
    const response = await call(`${method} ${cart}`, method === 'PATCH' ? { body: rename('x') } : {});
    expect(outcomeOf(response)).toBe('428 005');
    expect(shop.received.total).toBe(0);
  });

  it.each([
    ['an unknown tag', '"0123456789abcdef0123456789abcdef"'],
    ['an empty field', ''],
    ['an empty tag', '""'],
    ['the asterisk', '*'],
    ['the tag, weak', 'W/TAG'],
    ['the tag, marked by a coding', 'CODED'],
    ['the tag, unquoted', 'BARE'],
    ['the tag, cut', 'CUT'],
    ['the tag, and garbage', 'TAG x'],
    ['obs-text', '"\xff\xfe\x80"'],
    ['a lone quotation mark', '"'],
    ['20,000 commas', ','.repeat(20_000)],
    ['50 KiB', `"${'a'.repeat(50_000)}"`],
    ['braces and escapes', '"{tag}:%00\\"'],
  ])('If-Match: %s is 412 006, and not forwarded', async (_, value) => {
    const tag = await tagOf();
    shop.received.clear();
    const bare = tag.slice(1, -1);
    const spelt = value
      .replace('TAG', tag)
      .replace('CODED', `"${bare}-gzip"`)
      .replace('BARE', bare)
      .replace('CUT', tag.slice(0, -1));
    for (const method of ['PATCH', 'DELETE']) {
      const response = await call(`${method} ${cart}`, { ifMatch: spelt, body: rename('x') });
      expect(outcomeOf(response)).toBe('412 006');
    }
    expect(shop.received.total).toBe(0);
    expect(await tagOf()).toBe(tag);
  });

  it('a change makes two calls to the store', async () => {
    if (redis === undefined) return;
    const client = new Redis({ port: redis.port, host: '127.0.0.1' });
    const calls = async () =>
      Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1]);
    // The proxy also makes calls by itself, so the least of three counts is compared.
    const made: number[] = [];
    for (let i = 0; i < 3; i += 1) {
      const tag = await tagOf();
      const before = await calls();
      expect((await patch(tag)).status).toBe(200);
      made.push((await calls()) - before);
    }
    expect(Math.min(...made)).toBe(2);
    client.disconnect();
  });

  it('401 comes before 428 and 412', async () => {
    for (const ifMatch of [undefined, '"stale"']) {
      const response = await callShop(shopward.port, `PATCH ${cart}`, { ifMatch, body: rename('x') });
      expect(outcomeOf(response)).toBe('401 002');
    }
    expect(shop.received.total).toBe(0);
  });

  it('a change returns a new tag, and the old one gets 412', async () => {
    const before = await tagOf();
    const changed = await patch(before);
    expect([changed.status, changed.fields('etag')]).toEqual([200, [expect.stringMatching(aTag)]]);
    const after = changed.field('etag') ?? '';
    expect(after).not.toBe(before);
    expect(outcomeOf(await patch(before))).toBe('412 006');
    expect((await tagOf()).slice(0, 33)).toBe(after.slice(0, 33));
    // A change without an effect gives a new tag, too.
    expect((await patch(after)).field('etag')).not.toBe(after);
  });

  it('several tags and several lines are one list, and a tag may contain a comma', async () => {
    const tag = await tagOf();
    const changed = await patch(['"a,b"', `"other", ${tag}`]);
    expect(changed.status).toBe(200);
  });

  it('a change that the shop refuses keeps the tag', async () => {
    const tag = await tagOf();
    const refused = await patch(tag, cart, { data: { type: 'carts', attributes: { currency: 'XYZ' } } });
    expect(refused.status).toBe(422);
    expect(await tagOf()).toBe(tag);
    expect((await patch(tag)).status).toBe(200);
  });

  it('two writers with one tag: exactly one reaches the shop', async () => {
    const tag = await tagOf();
    shop.received.clear();
    const both = await Promise.all([patch(tag), patch(tag)]);
    expect(both.map(outcomeOf).sort()).toEqual(['200', '412 006']);
    expect(shop.received.byRoute.get('PATCH /carts/{id}')).toBe(1);
    expect((await patch(await tagOf())).status).toBe(200);
  });

  it('a write below the cart needs no tag, and outdates the tag of the cart', async () => {
    const tag = await tagOf();
    expect((await call(`POST ${cart}/items`, { body: item })).status).toBe(201);
    expect(outcomeOf(await patch(tag))).toBe('412 006');
    const next = await tagOf();
    expect(next).not.toBe(tag);
    expect((await patch(next)).status).toBe(200);
  });

  it('a created cart has a tag; after its deletion its tags get 412', async () => {
    const created = await call('POST /carts', { body: newCart });
    expect([created.status, created.fields('etag')]).toEqual([201, [expect.stringMatching(aTag)]]);
    const path = `/carts/${jsonOf(created).data.id}`;
    const changed = await patch(created.field('etag'), path);
    expect(changed.status).toBe(200);
    const tag = changed.field('etag') ?? '';
    const deleted = await call(`DELETE ${path}`, { ifMatch: tag });
    expect([deleted.status, deleted.body.length]).toEqual([204, 0]);
    const last = deleted.field('etag') ?? '';
    expect(last).toMatch(aTag);
    for (const value of [tag, last]) expect(outcomeOf(await patch(value, path))).toBe('412 006');
    const gone = await call(`GET ${path}`);
    expect([gone.status, gone.field('etag')]).toEqual([404, undefined]);
  });

  it('a collection of one cart has the tag of the cart; a collection of several has its own', async () => {
    const own = await shop.issueTokenFor('DE--30');
    const list = () => call('GET /carts', { token: own });
    expect(jsonOf(await list()).data).toEqual([]);
    await call('POST /carts', { token: own, body: newCart });
    const single = await list();
    const [{ id }] = jsonOf(single).data;
    const tag = single.field('etag');
    expect(tag).toMatch(aTag);
    const changed = await call(`PATCH /carts/${id}`, { token: own, ifMatch: tag, body: rename('One') });
    expect(changed.status).toBe(200);
    const several = (await call('GET /carts')).field('etag');
    expect(several).toMatch(aTag);
    expect(outcomeOf(await patch(several))).toBe('412 006');
    expect((await call('GET /carts', { ifNoneMatch: several })).status).toBe(304);
    expect((await call('GET /carts', { ifNoneMatch: several, token: own })).status).toBe(200);
  });

  it('a change that bypasses shopward outdates the tag', async () => {
    const tag = await tagOf();
    const direct = await callShop(shop.port, `GET ${cart}`, { token });
    const options = { token, ifMatch: direct.field('etag') ?? [], body: rename(`After ${Date.now()}`) };
    expect((await callShop(shop.port, `PATCH ${cart}`, options)).status).toBe(200);
    // A shop that enforces its own tags refuses at once. With another shop, the next GET notices the change.
    if (enforceTags) expect((await patch(tag)).status).toBe(412);
    const next = await tagOf();
    expect(next).not.toBe(tag);
    expect((await patch(next)).status).toBe(200);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { callShop, jsonOf, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

const publicUrl = 'https://api.shop.example';
let shop: DemoShop;
let shopward: RunningShopward;

beforeAll(async () => {
  shop = await startDemoShop({ resolverLatencyMs: 0 });
  shopward = await startShopwardHere({ upstream: shop.url, config: { publicUrl } });
});
afterAll(async () => {
  await shopward?.stop();
  await shop?.close();
});

const ask = (target: string, options: ShopCall = {}) =>
  callShop(shopward.port, `GET ${target}`, { fields: ['Accept-Language: de'], ...options });
const asked = () => shop.received.byRoute.get('GET /url-resolver') ?? 0;

describe('the contract', () => {
  it.each([
    ['/de/acer-aspire-s7-134', 'abstract-products', /^\d+$/],
    ['/en/computer', 'category-nodes', /^\d+$/],
    ['/en/return-policy', 'cms-pages', /^[0-9a-f-]{36}$/],
    ['/en/merchant/budget-cameras', 'merchants', /^MER\d+$/],
  ])('%s resolves to one of %s', async (url, entityType, entityId) => {
    const target = `/url-resolver?url=${encodeURIComponent(url)}`;
    const response = await ask(target);
    const self = publicUrl + target;
    const attributes = { entityType, entityId: expect.stringMatching(entityId) };
    expect(jsonOf(response)).toEqual({
      data: [{ type: 'url-resolver', id: null, attributes, links: { self } }],
      links: { self },
    });
    expect(response.field('content-type')).toBe('application/vnd.api+json');
    expect(response.field('x-content-type-options')).toBe('nosniff');
    // The entity exists at the address built from the answer.
    const { entityId: id } = jsonOf(response).data[0].attributes;
    expect((await ask(`/${entityType}/${id}`)).status).toBe(200);
  });

  it.each([
    ['a URL that does not exist', '404 2802', '/url-resolver?url=%2Fen%2Fnothing'],
    ['no parameter', '422 2801', '/url-resolver'],
    ['an empty URL', '422 2801', '/url-resolver?url='],
    ['a list', '422 2801', '/url-resolver?url[]=%2Fen%2Fcomputer'],
    ['an encoded list', '422 2801', '/url-resolver?url%5B%5D=%2Fen%2Fcomputer'],
    ['8 KiB', '404 2802', `/url-resolver?url=%2F${'x'.repeat(8191)}`],
    ['invalid UTF-8', '404 2802', '/url-resolver?url=%2Fen%2F%FF'],
    ['overlong UTF-8', '404 2802', '/url-resolver?url=%C0%AFen%2Fcomputer'],
    // The demo shop decodes three times.
    ['a double encoding', '200', '/url-resolver?url=%25252Fen%25252Fcomputer'],
    // Not a URL (RFC 3986 section 2), and refused by Node's parser; clients encode typed text.
    ['an unencoded umlaut', '400 bad-request-target', '/url-resolver?url=/de/zubeh\u00c3\u00b6r'],
    ['an ampersand', '200', '/url-resolver?url=/en/cameras-%26-camcorders'],
    ['an ampersand that ends the value', '404 2802', '/url-resolver?url=/en/cameras-&-camcorders'],
    ['an apostrophe', '200', "/url-resolver?url=/en/computer/pc's/workstations"],
    ['two URLs, of which the last counts', '200', '/url-resolver?url=/nothing&url=/en/computer'],
    ['more parameters', '200', '/url-resolver?include=x&url=/en/computer&cb=1'],
    ['an invalid escape', '404 2802', '/url-resolver?url=%25zz'],
  ])('%s: %s', async (_, outcome, target) => {
    expect(outcomeOf(await ask(target))).toBe(outcome);
  });

  it('a URL that is too long, empty or not UTF-8 is not asked for', async () => {
    const before = asked();
    for (const value of [`%2F${'y'.repeat(8191)}`, '%2F%FE', '']) await ask(`/url-resolver?url=${value}`);
    expect(asked()).toBe(before);
  });

  it.each([
    '/url-resolver?url=%2fen%2fcomputer',
    '/url-resolver?url=/en/computer',
    '/url-resolver?x="<>&url=/en/computer',
    '/url-resolver?url=/nothing&url=/en/computer&include=%C3%A4%22',
  ])('links.self returns the same body: %s', async (target) => {
    const first = await ask(target);
    expect(first.status).toBe(200);
    const { self } = jsonOf(first).links;
    expect(self.startsWith(`${publicUrl}/`)).toBe(true);
    const again = await ask(self.slice(publicUrl.length));
    expect(again.body.toString()).toBe(first.body.toString());
  });

  it('200 with an invalid token', async () => {
    const target = '/url-resolver?url=/en/computer';
    expect((await ask(target, { token: 'nonsense' })).status).toBe(200);
  });
});

it('a GET has an ETag and Vary, and a conditional GET gets 304 without a body', async () => {
  const target = '/url-resolver?url=/en/computer';
  const first = await ask(target);
  const etag = first.field('etag');
  expect([etag, first.field('vary')]).toEqual([expect.stringMatching(/^"[^"]+"$/), 'Accept-Language, Store']);
  expect(first.field('cache-control')).toMatch(/max-age=\d+/);
  for (const ifNoneMatch of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
    const known = await ask(target, { ifNoneMatch });
    expect([known.status, known.field('etag'), known.body.length]).toEqual([304, etag, 0]);
    expect(known.field('vary')).toBe('Accept-Language, Store');
  }
  expect((await ask(target, { ifNoneMatch: '"x"' })).status).toBe(200);
  const head = await callShop(shopward.port, `HEAD ${target}`, { fields: ['Accept-Language: de'] });
  expect([head.status, head.field('etag'), head.body.length]).toEqual([200, etag, 0]);
  expect(head.field('content-length')).toBe(String(first.body.length));
});

it.each(['POST', 'PATCH', 'PUT', 'DELETE'])('%s is forwarded to the shop', async (method) => {
  const before = shop.received.total;
  await callShop(shopward.port, `${method} /url-resolver?url=/en/computer`, { body: {} });
  expect(shop.received.total).toBe(before + 1);
});

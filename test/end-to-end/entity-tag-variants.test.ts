import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ageRedis } from '../harness/aged-redis.ts';
import { startChromium } from '../harness/chromium.ts';
import { listen } from '../harness/listen.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { callShop, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** Each cart is named after the `Vary` of its answer, with `_` for a comma; `none` has no such field. */
const carts = [
  ...['x-currency', 'accept-language', 'x-currency_accept-language', 'authorization'],
  ...['cookie', 'star', 'none'],
];
const aTag = /^"[0-9a-f]{32}\.[0-9a-f]{24}"$/;

let version = 1;
let shop: Server;
let shopUrl: string;
let redis: RedisProcess;
let browser: Browser;
const proxies: Partial<Record<'memory' | 'redis', RunningShopward>> = {};

/** A shop whose cart depends on currency, language and user, without its own tags. */
function answerOf({ url = '', headers }: IncomingMessage) {
  const [, , cart = ''] = url.split(/[/?]/);
  const name = cart.split('.')[0] ?? '';
  const token = headers.authorization?.split('.')[1] ?? '';
  const { sub } = JSON.parse(Buffer.from(token, 'base64url').toString() || '{}') as { sub?: string };
  const attributes = { currency: headers['x-currency'], language: headers['accept-language'], sub };
  const [body, vary] = [{ data: { type: 'carts', id: name, attributes: { ...attributes, version } } }, name];
  return {
    body: JSON.stringify(body),
    vary: vary === 'none' ? undefined : vary.replace('_', ', ').replace('star', '*'),
  };
}

beforeAll(async () => {
  shop = createServer((request, response) => {
    request.resume();
    if (request.url === '/page') return response.setHeader('Content-Type', 'text/html').end('<p>shop</p>');
    if (request.method !== 'GET') version += 1;
    const { body, vary } = answerOf(request);
    if (vary !== undefined) response.setHeader('Vary', vary);
    response.setHeader('Content-Type', 'application/vnd.api+json').setHeader('Cache-Control', 'no-cache');
    response.end(body);
  });
  shopUrl = (await listen(shop)).url;
  redis = await startRedisProcess();
  await ageRedis(redis.port);
  for (const kind of ['memory', 'redis'] as const) {
    proxies[kind] = await startShopwardHere({
      upstream: shopUrl,
      rows: ['GET /carts/{cart_id}', 'PATCH /carts/{cart_id}'],
      config: {
        request: { formatSuffixes: ['jsonapi', 'csv'] },
        store: { url: kind === 'memory' ? 'memory' : `redis://127.0.0.1:${redis.port}` },
        entityTags: { resources: [{ collection: '/carts', member: '/carts/{cart_id}' }] },
      },
    });
  }
  browser = await startChromium();
});
afterAll(async () => {
  await browser?.close();
  for (const each of Object.values(proxies)) await each.stop();
  await redis?.close();
  shop?.close();
});

const tokenOf = (sub: string) => proxies.memory?.issueToken({ sub }) ?? '';
const proxyOf = (kind: string) => proxies[kind as 'memory'] as RunningShopward;

describe.each(['memory', 'redis'])('over %s', (kind) => {
  const shopward = () => proxyOf(kind);
  const issue = (sub: string) => shopward().issueToken({ sub });
  let issued: Record<'anna' | 'bob', string> | undefined;
  /** Signed once: a signature takes more CPU than a request. */
  const tokens = () => (issued ??= { anna: issue('anna'), bob: issue('bob') });
  const get = (line: string, sub: 'anna' | 'bob', fields: readonly string[] = [], more: ShopCall = {}) =>
    callShop(shopward().port, line, { token: tokens()[sub], fields, ...more });

  test.each(carts)(
    'Chromium shows the currency, language and user of its last request: Vary: %s',
    async (cart) => {
      const asked = [
        ...[
          ['EUR', 'de', 'anna'],
          ['EUR', 'de', 'anna'],
          ['CHF', 'de', 'anna'],
          ['EUR', 'de', 'anna'],
        ],
        ...[
          ['EUR', 'en', 'anna'],
          ['EUR', 'de', 'anna'],
          ['EUR', 'de', 'bob'],
          ['EUR', 'de', 'anna'],
        ],
        ...[
          ['CHF', 'en', 'bob'],
          ['EUR', 'en', 'anna'],
          ['EUR', 'en', 'anna'],
        ],
      ];
      const requests = asked.map(([currency = '', language = '', sub = '']) => ({
        'X-Currency': currency,
        'Accept-Language': language,
        Authorization: `Bearer ${tokens()[sub as 'anna']}`,
      }));
      const shown = async (origin: string) => {
        const page = await browser.newPage();
        await page.goto(`${origin}/page`);
        const read = async ([path, all]: readonly [string, typeof requests]) => {
          const bodies: string[] = [];
          for (const headers of all) bodies.push(await (await fetch(path, { headers })).text());
          return bodies;
        };
        const bodies = await page.evaluate(read, [`/carts/${cart}`, requests] as const);
        await page.context().close();
        return bodies;
      };
      const before = shopward().log().length;
      const [direct, through] = [await shown(shopUrl), await shown(shopward().url)];
      expect(through).toEqual(direct);
      expect(through.map((body) => Object.values(JSON.parse(body).data.attributes).slice(0, 3))).toEqual(
        asked,
      );
      // The browser cache was used.
      const statuses = shopward()
        .log(before)
        .map(({ status }) => status);
      if (cart !== 'star') expect(statuses).toContain(304);
    },
  );

  const one = ['X-Currency: EUR', 'Accept-Language: de'];
  const others: readonly (readonly [string, string, 'anna' | 'bob', readonly string[]])[] = [
    ['another language', '', 'anna', ['X-Currency: EUR', 'Accept-Language: en']],
    ['another currency', '', 'anna', ['X-Currency: CHF', 'Accept-Language: de']],
    ['another user', '', 'bob', one],
    ['another query', '?include=items', 'anna', one],
    ['another suffix', '.jsonapi', 'anna', one],
    ['another coding', '', 'anna', [...one, 'Accept-Encoding: gzip']],
    ['a request of an agent', '', 'anna', [...one, 'X-Agent-Authorization: Bearer x']],
  ];
  test.each(carts.flatMap((cart) => others.map((other) => [cart, ...other] as const)))(
    'Vary: %s, %s: its tag gets the first request no 304; a write is accepted once, and ends both tags',
    async (cart, _, suffix, sub, fields) => {
      const [path, other] = [`/carts/${cart}`, `/carts/${cart}${suffix}`];
      const first = (await get(`GET ${path}`, 'anna', one)).field('etag') ?? '';
      const second = (await get(`GET ${other}`, sub, fields)).field('etag') ?? '';
      expect([first, second]).toEqual([expect.stringMatching(aTag), expect.stringMatching(aTag)]);
      expect(second).not.toBe(first);
      const again = (ifNoneMatch: string) => get(`GET ${path}`, 'anna', one, { ifNoneMatch });
      // Without `Vary`, another representation for the same fields counts as another state.
      const isKnown = cart !== 'star' && second.slice(0, 33) === first.slice(0, 33);
      expect([(await again(second)).status, (await again(first)).status]).toEqual([200, isKnown ? 304 : 200]);
      expect((await again(`${first.slice(0, 33)}"`)).status).toBe(200);
      const now = (await get(`GET ${path}`, 'anna', one)).field('etag') ?? '';
      const last = (await get(`GET ${other}`, sub, fields)).field('etag') ?? '';
      const isSameState = now.slice(0, 33) === last.slice(0, 33);
      const patch = (ifMatch: string) => get(`PATCH ${other}`, sub, fields, { ifMatch, body: {} });
      if (isSameState) expect((await patch(`"x", ${now}`)).status).toBe(200);
      else expect((await patch(last)).status).toBe(200);
      expect([(await patch(now)).status, (await patch(last)).status]).toEqual([412, 412]);
    },
  );

  test('the tag of a write is accepted in If-Match, with and without its variant, but gets no 304', async () => {
    const path = '/carts/x-currency';
    const tag = (await get(`GET ${path}`, 'anna', one)).field('etag') ?? '';
    const changed = (await get(`PATCH ${path}`, 'anna', one, { ifMatch: tag, body: {} })).field('etag') ?? '';
    expect(changed).toMatch(/^"[0-9a-f]{32}\.0"$/);
    const read = await get(`GET ${path}`, 'anna', one, { ifNoneMatch: changed });
    expect([read.status, read.field('etag')?.slice(0, 33)]).toEqual([200, changed.slice(0, 33)]);
    const stateAlone = `${changed.slice(0, 33)}"`;
    const again = await get(`PATCH ${path}`, 'anna', one, { ifMatch: stateAlone, body: {} });
    expect(again.status).toBe(200);
    const weak = await get(`PATCH ${path}`, 'anna', one, { ifMatch: `W/${again.field('etag')}`, body: {} });
    expect(weak.status).toBe(412);
  });

  test('no 304 for a variant that the store no longer has', async () => {
    const path = '/carts/x-currency';
    const tag = (await get(`GET ${path}`, 'anna', one)).field('etag') ?? '';
    for (let i = 0; i < 40; i += 1) await get(`GET ${path}?i=${i}`, 'anna', one);
    version += 1;
    await get(`GET ${path}`, 'anna', one);
    expect((await get(`GET ${path}`, 'anna', one, { ifNoneMatch: tag })).status).toBe(200);
  });
});

test('another process gives the same request another tag, so that tags reveal nothing about users', async () => {
  const tags = new Set<string>();
  for (const kind of ['memory', 'redis']) {
    const response = await callShop(proxyOf(kind).port, 'GET /carts/authorization', {
      token: tokenOf('anna'),
    });
    tags.add(response.field('etag')?.slice(34) ?? '');
  }
  expect(tags.size).toBe(2);
});

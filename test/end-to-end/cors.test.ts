import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

const origin = 'https://shop.example';
let shop: DemoShop;
let shopward: RunningShopward;
beforeAll(async () => {
  shop = await startDemoShop();
  shopward = await startShopwardHere({ upstream: shop.url, config: { cors: { origins: [origin] } } });
});
afterAll(async () => {
  await shopward.stop();
  await shop.close();
});

const ask = (head: string, more: string) =>
  exchangeRaw(
    shopward.port,
    `${head} HTTP/1.1\r\nHost: shop\r\nAccept: */*\r\nConnection: close\r\n${more}\r\n`,
  );

test('a preflight of a known origin is answered by the proxy and allows If-Match', async () => {
  shop.received.clear();
  const answer = await ask(
    'OPTIONS /carts/1',
    `Origin: ${origin}\r\nAccess-Control-Request-Method: PATCH\r\nAccess-Control-Request-Headers: if-match\r\n`,
  );
  expect(answer.status).toBe(204);
  expect(answer.field('access-control-allow-origin')).toBe(origin);
  expect(answer.field('access-control-allow-headers')).toContain('If-Match');
  expect(shop.received.total).toBe(0);
});

test('browsers may read a refusal and the answer of an open path', async () => {
  const refused = await ask('GET /carts', `Origin: ${origin}\r\n`);
  expect([refused.status, refused.field('access-control-allow-origin')]).toEqual([401, origin]);
  expect(refused.field('access-control-expose-headers')).toContain('WWW-Authenticate');
  const open = await ask('GET /abstract-products/134', `Origin: ${origin}\r\n`);
  expect([open.status, open.fields('access-control-allow-origin')]).toEqual([200, [origin]]);
});

test.each([
  ['GET /carts/%2e%2e/x', 'Host: other', 400],
  ['TRACE /carts', 'Host: shop', 405],
  ['POST /carts', 'Host: shop\r\nContent-Length: 9999999', 413],
])('browsers may read the early refusal of %s from a known origin only', async (line, host, status) => {
  const bytes = (from: string) =>
    `${line} HTTP/1.1\r\n${host}\r\nConnection: close\r\nOrigin: ${from}\r\n\r\n`;
  const answer = await exchangeRaw(shopward.port, bytes(origin));
  expect([answer.status, answer.fields('access-control-allow-origin')]).toEqual([status, [origin]]);
  expect(answer.field('access-control-expose-headers')).toContain('Retry-After');
  const outsider = await exchangeRaw(shopward.port, bytes('https://evil.example'));
  expect([outsider.status, outsider.fields('access-control-allow-origin')]).toEqual([status, []]);
});

const malformed = [
  ...'/carts/%2e%2e/x /a%2Fb /a%5Cb /carts/%252e /a%00 /%zz'.split(' '),
  '/a\\b',
  '/a/./b',
  `/${'a/'.repeat(65)}`,
  `/${'a'.repeat(8_200)}`,
  'http://other.example/carts',
  '*',
];

test.each(malformed)(
  'the preflight of the malformed target %s gets 204, so that the page can read the refusal',
  async (target) => {
    shop.received.clear();
    const preflight = (from: string) => `Origin: ${from}\r\nAccess-Control-Request-Method: PATCH\r\n`;
    const answer = await ask(`OPTIONS ${target}`, preflight(origin));
    expect([answer.status, answer.field('access-control-allow-origin')]).toEqual([204, origin]);
    const real = await ask(`PATCH ${target}`, `Origin: ${origin}\r\nContent-Length: 0\r\n`);
    expect([400, 414]).toContain(real.status);
    expect(real.field('access-control-allow-origin')).toBe(origin);
    // OPTIONS from another origin, or without the fields of a preflight, is refused like the PATCH.
    const others = [preflight('https://evil.example'), `Origin: ${origin}\r\n`, ''];
    for (const fields of others) {
      const { status } = await ask(`OPTIONS ${target}`, fields);
      expect(status).toBe(real.status);
    }
    expect(shop.received.total).toBe(0);
  },
);

test('Allow of a 405 lists the default and the configured methods', async () => {
  const usual = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
  expect((await ask('PROPFIND /carts', '')).field('allow')).toBe(usual);
  const more = await startShopwardHere({
    upstream: shop.url,
    config: { request: { methods: ['REPORT', 'PROPFIND'] } },
  });
  const head = (method: string) => `${method} /stores HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`;
  const known = await exchangeRaw(more.port, head('PROPFIND'));
  const refused = await exchangeRaw(more.port, head('MKCOL'));
  await more.stop();
  expect(known.status).not.toBe(405);
  expect([refused.status, refused.field('allow')]).toEqual([405, `${usual}, REPORT, PROPFIND`]);
});

test('an unknown origin gets no Access-Control-Allow-Origin', async () => {
  const answer = await ask('GET /abstract-products/134', 'Origin: https://evil.example\r\n');
  expect([answer.status, answer.fields('access-control-allow-origin')]).toEqual([200, []]);
  expect(answer.fields('vary')).toContain('Origin');
});

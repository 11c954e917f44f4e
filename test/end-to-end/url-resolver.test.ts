import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let shop: DemoShop;
let shopward: RunningShopward;

beforeAll(async () => {
  shop = await startDemoShop({ resolverLatencyMs: 0 });
  shopward = await startShopwardHere({
    upstream: shop.url,
    config: { urlResolver: { staleWhileRevalidate: '1h' } },
  });
});
afterAll(async () => {
  await shopward.stop();
  await shop.close();
});

const ask = (target: string, method = 'GET') =>
  exchangeRaw(
    shopward.port,
    `${method} ${target} HTTP/1.1\r\nHost: shop\r\nAccept: */*\r\nAccept-Language: de\r\nConnection: close\r\n\r\n`,
    method,
  );
const asked = () => shop.received.requests.filter(({ target }) => target.startsWith('/url-resolver')).length;

test('a mapping is looked up once, and HEAD is answered from it, too', async () => {
  const target = '/url-resolver?url=%2Fen%2Fcomputer';
  const first = await ask(target);
  expect([first.status, first.field('cache-status')]).toEqual([200, expect.stringContaining('fwd=miss')]);
  const questions = asked();
  const second = await ask(target);
  expect([second.status, second.field('cache-status')]).toEqual([200, expect.stringContaining('hit')]);
  expect(second.body.toString()).toBe(first.body.toString());
  const head = await ask(target, 'HEAD');
  expect([head.status, head.body.length]).toEqual([200, 0]);
  expect(asked()).toBe(questions);
});

test('a purge over the admin port makes the next request ask again', async () => {
  const target = '/url-resolver?url=%2Fen%2Freturn-policy';
  await ask(target);
  const purged = await fetch(`${shopward.adminUrl}/purge`, {
    method: 'POST',
    body: JSON.stringify({ url: '/en/return-policy' }),
  });
  expect(purged.status).toBe(200);
  expect((await ask(target)).field('cache-status')).toContain('fwd=miss');
  const wrong = await fetch(`${shopward.adminUrl}/purge`, { method: 'POST', body: '{"urls":[]}' });
  expect(wrong.status).toBe(400);
});

test('cached answers go on while the shop is gone; what is not cached is 502, never 404', async () => {
  const target = '/url-resolver?url=%2Fen%2Fmerchant%2Fbudget-cameras';
  const before = await ask(target);
  await shop.close();
  const after = await ask(target);
  expect([after.status, after.body.toString()]).toEqual([200, before.body.toString()]);
  const unknown = await ask('/url-resolver?url=%2Fen%2Fnever-asked');
  expect(unknown.status).toBe(502);
  expect(unknown.body.toString()).toContain('upstream-unreachable');
});

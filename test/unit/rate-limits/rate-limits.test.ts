import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { exchangeRaw, type RawResponse } from '../../harness/raw-client.ts';
import { type RedisSentinel, startRedis, startSentinel } from '../../harness/redis-processes.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

/** Limits over real sockets, in the memory of one process and in real stores. */
const shop = createServer((_, response) =>
  response.setHeader('Content-Type', 'application/json').end('{"data":{}}'),
);
const closing: { close(): Promise<void> }[] = [];
beforeAll(() => new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve)));
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});
afterAll(() => shop.close());

async function serve(
  rateLimits: object | false,
  more: object = {},
  list: readonly (string | object)[] = ['GET /mine'],
): Promise<RunningShopward> {
  const one = await startShopwardHere({
    upstream: `http://127.0.0.1:${(shop.address() as AddressInfo).port}`,
    config: { rateLimits, trustedProxies: ['127.0.0.1'], ...more },
    rows: list,
  });
  closing.push({ close: () => one.stop() });
  return one;
}

function send({ port }: RunningShopward, line: string, ...fields: string[]): Promise<RawResponse> {
  const length = line.startsWith('POST') ? ['Content-Length: 2', 'Content-Type: application/json'] : [];
  const body = length.length > 0 ? '{}' : '';
  const lines = [`${line} HTTP/1.1`, 'Host: a', 'Connection: close', ...length, ...fields, '', body];
  return exchangeRaw(port, lines.join('\r\n'));
}
const from = (address: string) => `X-Forwarded-For: ${address}`;
const limit = { method: 'GET', path: '/search', requests: 2, per: '1h', mode: 'enforce' };
const rows = (...more: object[]) => ({ tokenEndpoints: false, rows: more });

async function statuses(
  one: RunningShopward,
  line: string,
  ...senders: (readonly string[])[]
): Promise<number[]> {
  const all: number[] = [];
  for (const fields of senders) all.push((await send(one, line, ...fields)).status);
  return all;
}

describe('in memory', () => {
  it('refuses requests beyond the limit, and says when to try again', async () => {
    const one = await serve(rows(limit, { ...limit, method: 'PATCH', path: '/carts/{id}' }));
    const first = await send(one, 'GET /search');
    expect([first.status, first.field('ratelimit-policy'), first.field('ratelimit')]).toEqual([
      200,
      '"GET /search";q=2;w=3600',
      '"GET /search";r=1;t=1800',
    ]);
    await send(one, 'GET /search?other=1');
    const refused = await send(one, 'HEAD /SEARCH/');
    expect(refused.status).toBe(429);
    expect(refused.field('ratelimit-policy')).toBe('"GET /search";q=2;w=3600');
    expect(refused.field('ratelimit')).toMatch(/^"GET \/search";r=0;t=\d+$/);
    expect(Number(refused.field('retry-after'))).toBeGreaterThan(0);
    expect((await send(one, 'GET /other')).field('ratelimit')).toBe(undefined);
    const stale = await send(one, 'PATCH /carts/1', 'Content-Length: 0', 'If-Match: "x"');
    expect([stale.status, stale.field('ratelimit')]).toEqual([412, '"PATCH /carts/{id}";r=1;t=1800']);
    await one.waitForLog(({ rejection, reason }) => rejection === 'rate-limited' && reason === 'GET /search');
  });

  it('tells clients apart by address, IPv6 by its first 64 bits, and by the verified subject', async () => {
    const one = await serve(rows(limit, { ...limit, path: '/mine' }));
    const senders = ['192.0.2.1', '192.0.2.1', '192.0.2.1', '192.0.2.2', '2001:db8::1', '2001:db8::2'];
    const more = ['2001:db8:0:0:ffff::3', '2001:db8:0:1::1'];
    const answered = await statuses(one, 'GET /search', ...[...senders, ...more].map((one) => [from(one)]));
    expect(answered).toEqual([200, 200, 429, 200, 200, 200, 429, 200]);
    const as = (sub: string, address: string) => [
      `Authorization: Bearer ${one.issueToken({ sub })}`,
      from(address),
    ];
    const own = [as('a', '192.0.2.1'), as('a', '192.0.2.2'), as('a', '192.0.2.3'), as('b', '192.0.2.3')];
    expect(await statuses(one, 'GET /mine', ...own)).toEqual([200, 200, 429, 200]);
    // Without a good token, a client cannot use up another client's limit.
    expect(await statuses(one, 'GET /mine', [from('192.0.2.9')], [from('192.0.2.9')])).toEqual([401, 401]);
  });

  it.each([
    ['of the whole proxy', { mode: 'observe' }, []],
    ['of the row', {}, [{ match: 'GET /search', observe: true }]],
  ])('observe mode %s also applies to an enforced limit', async (_, more, observed) => {
    const one = await serve(rows(limit), more, ['GET /mine', ...observed]);
    const sender = [`Authorization: Bearer ${one.issueToken({ sub: 'a' })}`];
    expect(await statuses(one, 'GET /search', sender, sender, sender)).toEqual([200, 200, 200]);
    await one.waitForLog(({ observed }) => observed === 'rate-limited');
  });

  it('token endpoints are watched by default, and no client is refused', async () => {
    const one = await serve({});
    const guesses = Array.from({ length: 60 }, () => [] as string[]);
    expect(new Set(await statuses(one, 'POST /access-tokens', ...guesses))).toEqual(new Set([200]));
    await one.waitForLog(({ observed }) => observed === 'rate-limited');
    const metrics = await (await fetch(`${one.adminUrl}/metrics`)).text();
    // 30 are beyond the limit, one fewer for each two seconds that the requests took.
    expect(metrics).toMatch(/event="observed"[^\n]* [1-9]\d*\n/);
    const enforced = await serve({ tokenEndpoints: { requests: 1, mode: 'enforce' } });
    expect(await statuses(enforced, 'POST /token', [], [])).toEqual([200, 429]);
  });
});

describe('in a store', () => {
  it('lets requests pass while the store is away, and says so', async () => {
    const redis = await startRedis();
    const one = await serve(rows(limit), { store: { url: redis.url } });
    expect(await statuses(one, 'GET /search', [], [], [])).toEqual([200, 200, 429]);
    await redis.close();
    expect(await statuses(one, 'GET /search', [], [], [])).toEqual([200, 200, 200]);
    const ready = await (await fetch(`${one.adminUrl}/readyz`)).text();
    expect(ready).toContain('rate limits: the store does not count, every request passes');
  });

  it('goes on after a failover of Sentinel', async () => {
    const sentinel: RedisSentinel = await startSentinel();
    closing.push({ close: () => sentinel.close() });
    const one = await serve(rows(limit), { store: { url: sentinel.url, replicas: 1 } });
    const statusOf = async (address: string) => (await statuses(one, 'GET /search', [from(address)]))[0];
    expect([await statusOf('192.0.2.1'), await statusOf('192.0.2.1'), await statusOf('192.0.2.1')]).toEqual([
      200, 200, 429,
    ]);
    await sentinel.failover();
    // While the store does not count, all requests pass; afterwards a client above its limit is refused again.
    let address = 10;
    await eventually('a refusal', async () => {
      address += 1;
      const sent = [await statusOf(`192.0.2.${address}`), await statusOf(`192.0.2.${address}`)];
      expect(sent).toEqual([200, 200]);
      return (await statusOf(`192.0.2.${address}`)) === 429 ? true : undefined;
    });
  });
});

import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { UrlResolver } from '../../../src/url-resolver/filter.ts';
import { until } from '../../harness/redis-processes.ts';
import { createResolver, entityOf, type ResolverSettings, resolve, targetOf } from './resolver-request.ts';
import { catalogue, type Shop, sendUnknown, startShop } from './shop.ts';

let shop: Shop;
let resolver: UrlResolver;
let nowMs: number;
const acer = targetOf('/en/acer');
const minute = 60_000;

/** A resolver that waits a minute for the shop. */
function create(more: ResolverSettings = {}): UrlResolver {
  const upstream = { ask: shop.ask, timeoutMs: minute };
  return createResolver({ upstream, staleWaitMs: minute, now: () => nowMs, ...more });
}

beforeEach(async () => {
  nowMs = 1_800_000_000_000;
  shop = await startShop(catalogue({ '/en/acer': ['abstract-products', '134'] }));
  resolver = create();
});
afterEach(async () => {
  await resolver.close();
  await shop.close();
});

it('after two of five minutes a mapping is a hit with ttl and max-age of 180 s', async () => {
  await resolve(resolver, acer);
  nowMs += 2 * minute;
  const answer = await resolve(resolver, acer);
  expect(answer.field('Cache-Status')).toBe('shopward; hit; ttl=180');
  expect(answer.field('Cache-Control')).toBe('public, max-age=180');
  expect(shop.requests.length).toBe(1);
});

it('not found is cached for notFoundTtl and then asked again', async () => {
  await resolve(resolver, targetOf('/new'));
  nowMs += 29_000;
  expect((await resolve(resolver, targetOf('/new'))).field('Cache-Control')).toBe('public, max-age=1');
  nowMs += 1000;
  shop.handler = (_, response) => void response.destroy();
  expect((await resolve(resolver, targetOf('/new'))).status).toBe(502);
  shop.handler = catalogue({ '/new': ['merchants', 'MER1'] });
  expect((await resolve(resolver, targetOf('/new'))).status).toBe(200);
});

it.each(['/nothing', '%ff', '%2Fen%2Facer'])(
  'max-age of %s is whole seconds, rounded down',
  async (value) => {
    resolver = create({ lifetimes: { ttlMs: 1500, notFoundTtlMs: 1500 } });
    for (let i = 0; i < 2; i += 1) {
      const answer = await resolve(resolver, `/url-resolver?url=${value}`);
      expect(answer.field('Cache-Control')).toBe('public, max-age=1');
    }
  },
);

it('within staleWhileRevalidate ten requests get the stale mapping at once, with one look-up', async () => {
  await resolve(resolver, acer);
  shop.handler = catalogue({ '/en/acer': ['abstract-products', '135'] });
  nowMs += 5 * minute;
  const stale = await Promise.all(Array.from({ length: 10 }, () => resolve(resolver, acer)));
  for (const answer of stale) {
    expect(entityOf(answer.body)[1]).toBe('134');
    expect(answer.field('Cache-Status')).toBe('shopward; hit; ttl=0; detail=revalidating');
    expect(answer.field('Cache-Control')).toBe('public, max-age=0');
  }
  await until(async () => entityOf((await resolve(resolver, acer)).body)[1] === '135');
  expect(shop.requests.length).toBe(2);
});

it('after staleWhileRevalidate the request waits for the shop', async () => {
  await resolve(resolver, acer);
  shop.handler = catalogue({ '/en/acer': ['abstract-products', '135'] });
  nowMs += 7 * minute;
  const answer = await resolve(resolver, acer);
  expect(entityOf(answer.body)[1]).toBe('135');
  expect(answer.field('Cache-Status')).toBe('shopward; fwd=stale; stored; ttl=300');
});

it('a mapping that the shop has deleted becomes not found, and is not stale later', async () => {
  await resolve(resolver, acer);
  shop.handler = (_, response) => sendUnknown(response);
  nowMs += 7 * minute;
  expect((await resolve(resolver, acer)).status).toBe(404);
  await shop.close();
  nowMs += minute;
  expect((await resolve(resolver, acer)).status).toBe(502);
});

it('while the shop is down a mapping is served for staleIfError, with one look-up every few seconds', async () => {
  await resolve(resolver, acer);
  await shop.close();
  nowMs += 60 * minute;
  const first = await resolve(resolver, acer);
  expect(first.status).toBe(200);
  expect(first.field('Cache-Status')).toBe('shopward; hit; ttl=-3300; detail=error');
  const { lookups } = resolver.stats();
  for (let i = 0; i < 50; i += 1) expect((await resolve(resolver, acer)).status).toBe(200);
  expect(resolver.stats().lookups).toBe(lookups);
  nowMs += 6000;
  await resolve(resolver, acer);
  expect(resolver.stats().lookups).toBe(lookups + 1);
  expect((await resolve(resolver, targetOf('/cold'))).status).toBe(502);
  nowMs += 24 * 60 * minute;
  expect((await resolve(resolver, acer)).status).toBe(502);
});

it('a stale mapping is served after staleWaitMs if the shop does not answer', async () => {
  resolver = create({ staleWaitMs: 50 });
  await resolve(resolver, acer);
  shop.handler = () => {};
  nowMs += 60 * minute;
  const answer = await resolve(resolver, acer);
  expect(answer.field('Cache-Status')).toMatch(/detail=error$/);
  expect(resolver.stats().lookupsUnderWay).toBe(1);
});

it('1000 unknown URLs take 20 of 200 entries and evict no mapping', async () => {
  resolver = create({ maxEntries: 200 });
  await resolve(resolver, acer);
  for (let i = 0; i < 1000; i += 1) await resolve(resolver, targetOf(`/random/${i}`));
  expect(resolver.stats().entries).toBe(21);
  expect((await resolve(resolver, acer)).field('Cache-Status')).toMatch(/hit/);
});

it.each([-3_600_000, 3_600_000])('a wall clock that is moved by %i ms changes no ttl', async (ms) => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const own = createResolver({ upstream: { ask: shop.ask }, lifetimes: { ttlMs: 300_000 } });
  try {
    await resolve(own, acer);
    vi.setSystemTime(Date.now() + ms);
    const answer = await resolve(own, acer);
    // The test takes some seconds at most.
    expect(answer.field('Cache-Status')).toMatch(/^shopward; hit; ttl=2\d\d$/);
    expect(answer.field('Cache-Control')).toMatch(/^public, max-age=2\d\d$/);
  } finally {
    vi.useRealTimers();
    await own.close();
  }
});

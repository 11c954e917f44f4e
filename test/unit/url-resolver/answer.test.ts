import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CanonicalRequest, Method } from '../../../src/http/canonical-request.ts';
import { plan } from '../../../src/proxy/plan.ts';
import {
  createResolverMatcher,
  type ResolverMatcher,
  type UrlResolver,
} from '../../../src/url-resolver/filter.ts';
import { createResolver, requestFor, resolve, targetOf } from './resolver-request.ts';
import { catalogue, type Shop, startShop } from './shop.ts';

const urls = { '/en/acer': ['abstract-products', '134'], '/en/computer': ['category-nodes', '5'] } as const;

let shop: Shop;
let resolver: UrlResolver;
const publicUrl = 'https://api.shop.example';

beforeAll(async () => {
  shop = await startShop(catalogue(urls));
  resolver = createResolver({ publicUrl, upstream: { ask: shop.ask } });
});
afterAll(async () => {
  await resolver.close();
  await shop.close();
});

describe('counts and fields', () => {
  it('an invalid URL gets the same max-age as a URL that the shop does not know', async () => {
    const lifetimes = { notFoundTtlMs: 7999 };
    const own = createResolver({ upstream: { ask: shop.ask }, lifetimes, now: () => 0 });
    const refusals = await Promise.all(
      ['/url-resolver?url=%ff', targetOf('/nothing')].map((target) => resolve(own, target)),
    );
    const fields = (cacheStatus: string) => ({
      'Cache-Control': 'public, max-age=7',
      'X-Content-Type-Options': 'nosniff',
      'Cache-Status': cacheStatus,
    });
    const names = Object.keys(fields(''));
    expect(refusals.map(({ field }) => Object.fromEntries(names.map((name) => [name, field(name)])))).toEqual(
      [fields('shopward; detail=unasked'), fields('shopward; fwd=miss; stored; ttl=7')],
    );
    await own.close();
  });
});

describe('requests that the resolver answers', () => {
  it.each<[Method, string, boolean]>([
    ['GET', '/url-resolver', true],
    ['HEAD', '/url-resolver', true],
    ['GET', '/url-resolver/', true],
    ['GET', '/url-resolver//', false],
    ['GET', '//url-resolver', false],
    ['GET', '/URL-RESOLVER', false],
    ['GET', '/url-resolver/x', false],
    ['GET', '/url-resolver;a=b', false],
    ['GET', '/x/url-resolver', false],
    ['GET', '/url-resolve', false],
    ['POST', '/url-resolver', false],
    ['OPTIONS', '/url-resolver', false],
    ['DELETE', '/url-resolver', false],
    ['GET', '/v0/url-resolver', false],
  ])('%s %s: %s', (method, path, isOurs) => {
    const matcher = createResolverMatcher('/url-resolver', { ignoredPrefixes: [], versionSegments: false });
    expect(isAnsweredBy(matcher, requestFor(path, { method }))).toBe(isOurs);
  });
});

it.each([
  ['/v0', true],
  ['/1.0', true],
  ['/index.php', true],
  ['/index.phpv0', true],
  ['/x', false],
])('with ignored versions and a prefix it answers %s before its path: %s', (front, isOurs) => {
  const matcher = createResolverMatcher('/url-resolver', { ignoredPrefixes: ['/index.php'] });
  expect(isAnsweredBy(matcher, requestFor(`${front}/url-resolver`))).toBe(isOurs);
});

function isAnsweredBy(matcher: ResolverMatcher, request: CanonicalRequest): boolean {
  const list = { inForce: { match: () => undefined, tokenParameters: [] } };
  return 'endpoint' in plan(request, { endpoints: [matcher], list, filters: [], observe: false });
}

describe('links.self', () => {
  it('has the scheme and Host of the request if publicUrl is not set', async () => {
    const own = createResolver({ upstream: { ask: shop.ask } });
    const { body } = await resolve(own, targetOf('/en/acer'), { host: 'b.example:8443', scheme: 'http' });
    expect(JSON.parse(body).links.self).toBe(`http://b.example:8443${targetOf('/en/acer')}`);
  });

  it.each([
    ['publicUrl', { publicUrl }, 'Accept-Language, Store'],
    ['no publicUrl: its links follow Host', {}, 'Accept-Language, Store, Host'],
    ['a store by host', { publicUrl, storeByHost: true }, 'Accept-Language, Store, Host'],
  ])('Vary names all fields that the answer depends on: %s', async (_, options, vary) => {
    const own = createResolver({ ...options, upstream: { ask: shop.ask } });
    const etag = (await resolve(own, targetOf('/en/acer'))).field('ETag') ?? '';
    for (const [target, fields, status] of [
      [targetOf('/en/acer'), [], 200],
      [targetOf('/en/acer'), ['If-None-Match', etag], 304],
      [targetOf('/nothing'), [], 404],
      ['/url-resolver?url=%ff', [], 404],
    ] as const) {
      const answer = await resolve(own, target, { fields });
      expect([answer.status, answer.field('Vary')]).toEqual([status, vary]);
    }
    await own.close();
  });

  it('is the escaped target for any octets in the query, and adds no member', async () => {
    const octets = fc
      .array(fc.oneof(fc.constantFrom('"', '\\', '<', '>', "'", '{', '%22', '%', '/'), octet()))
      .map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(octets, async (noise) => {
        const query = `?x=${noise.replaceAll('&', '')}&url=/en/acer`;
        const { body } = await resolve(resolver, `/url-resolver${query}`);
        expect(body).toMatch(/^[\x20-\x3b\x3d\x3f-\x7e]*$/);
        const { data, links } = JSON.parse(body);
        expect(Object.keys(JSON.parse(body))).toEqual(['data', 'links']);
        expect(data[0].links.self).toBe(links.self);
        const octets = Buffer.from(links.self.slice(publicUrl.length), 'latin1').toString('latin1');
        const raw = `/url-resolver${query}`.replace(
          /[\x80-\xff]/g,
          (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
        );
        expect(octets).toBe(raw);
      }),
      { numRuns: 500 },
    );
  });
});

function octet() {
  return fc.integer({ min: 0x21, max: 0xff }).map((code) => String.fromCharCode(code));
}

describe('entity tag', () => {
  it('differs by entity and by locale', async () => {
    const tags = await Promise.all(
      [
        resolve(resolver, targetOf('/en/acer')),
        resolve(resolver, targetOf('/en/computer')),
        resolve(resolver, targetOf('/en/acer'), { fields: ['Accept-Language', 'de'] }),
      ].map(async (answer) => (await answer).field('ETag')),
    );
    expect(new Set(tags).size).toBe(3);
  });
});

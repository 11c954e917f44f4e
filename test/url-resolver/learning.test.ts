import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createUrlResolver } from '../../src/url-resolver/create-url-resolver.ts';
import { extractMappings } from '../../src/url-resolver/learning/extract-mappings.ts';
import type { UrlResolver } from '../../src/url-resolver/url-resolver.ts';
import { until } from '../harness/redis-processes.ts';
import { entityOf, requestFor, resolve, targetOf } from './resolver-request.ts';
import { catalogue, type Shop, startShop } from './shop.ts';

const product = (url: unknown, id: unknown = '134') => ({
  type: 'abstract-products',
  id,
  attributes: { url },
});
const node = (nodeId: unknown, url: unknown, more = {}) => ({ nodeId, url, ...more });

describe('what a document teaches', () => {
  it.each<[string, unknown, [string, string, string][]]>([
    ['a product', { data: product('/en/a') }, [['/en/a', 'abstract-products', '134']]],
    [
      'a list',
      { data: [product('/en/a'), product('/en/b', '2')] },
      [
        ['/en/a', 'abstract-products', '134'],
        ['/en/b', 'abstract-products', '2'],
      ],
    ],
    [
      'included ones',
      { data: { type: 'catalog-search', id: null }, included: [product("/en/pc's-&-more")] },
      [["/en/pc's-&-more", 'abstract-products', '134']],
    ],
    [
      'a tree',
      {
        data: [
          {
            type: 'category-trees',
            id: null,
            attributes: {
              categoryNodesStorage: [node(5, '/en/c', { children: [node(6, '/en/c/n', { children: [] })] })],
            },
          },
        ],
      },
      [
        ['/en/c', 'category-nodes', '5'],
        ['/en/c/n', 'category-nodes', '6'],
      ],
    ],
    [
      'a node with parents',
      {
        data: {
          type: 'category-nodes',
          id: '6',
          attributes: node(6, '/en/c/n', { parents: [node(1, '/en')] }),
        },
      },
      [
        ['/en/c/n', 'category-nodes', '6'],
        ['/en', 'category-nodes', '1'],
      ],
    ],
    [
      'pages and merchants',
      {
        data: [
          { type: 'cms-pages', id: 'u-u', attributes: { url: '/en/p' } },
          { type: 'merchants', id: 'MER1', attributes: { merchantUrl: '/en/merchant/x', url: '/no' } },
        ],
      },
      [
        ['/en/p', 'cms-pages', 'u-u'],
        ['/en/merchant/x', 'merchants', 'MER1'],
      ],
    ],
    [
      'suggestions',
      {
        data: [
          {
            type: 'catalog-search-suggestions',
            id: null,
            attributes: {
              abstractProducts: [{ url: '/en/a', abstractSku: '134' }],
              categoryCollection: [{ url: '/en/c', idCategory: 9 }],
            },
          },
        ],
      },
      [['/en/a', 'abstract-products', '134']],
    ],
    ['no url', { data: [product(null), product(undefined), product(''), product('https://x/')] }, []],
    ['no id', { data: [product('/a', null), product('/b', 5), product('/c', '')] }, []],
    ['other types', { data: [{ type: 'concrete-products', id: '1', attributes: { url: '/x' } }] }, []],
    ['a banner', { data: [{ type: 'content-banners', id: '1', attributes: { clickUrl: '/x' } }] }, []],
    ['nonsense', [1, 'x', null], []],
    [
      'nonsense inside',
      { data: [null, 1, { type: 'category-nodes', attributes: { children: 'x', nodeId: '6' } }] },
      [],
    ],
  ])('%s', (_, document, expected) => {
    const found = extractMappings(Buffer.from(JSON.stringify(document)));
    expect([...found].map(([url, { entityType, entityId }]) => [url, entityType, entityId])).toEqual(
      expected,
    );
  });

  it('is bounded in number and depth', () => {
    const many = { data: Array.from({ length: 5000 }, (_, i) => product(`/${i}`)) };
    expect(extractMappings(Buffer.from(JSON.stringify(many))).size).toBe(500);
    let deep: unknown = node(1, '/1');
    for (let i = 2; i < 1000; i += 1) deep = node(i, `/${i}`, { children: [deep] });
    const document = { data: { type: 'category-nodes', id: '1', attributes: deep } };
    expect(extractMappings(Buffer.from(JSON.stringify(document))).size).toBeLessThan(20);
    expect(extractMappings(Buffer.from('{"data":'))).toEqual(new Map());
  });
});

describe('a lesson', () => {
  let shop: Shop;
  let resolver: UrlResolver;
  beforeEach(async () => {
    shop = await startShop(catalogue({}));
    resolver = createUrlResolver({ upstream: { ask: shop.ask }, learning: true, stores: ['DE'] });
    await resolver.start();
  });
  afterEach(async () => {
    await resolver.close();
    await shop.close();
  });
  const body = Buffer.from(JSON.stringify({ data: product('/en/acer') }));
  const plain = ['Content-Type', 'application/vnd.api+json', 'Content-Language', 'en_US'];
  const from = (target: string, fields: string[] = []) =>
    resolver.startLesson(requestFor(target, { fields }));

  it.each([
    ['/abstract-products/134', [], true],
    ['/category-trees', [], true],
    ['/catalog-search?q=x&include=abstract-products', [], true],
    ['/content-product-abstract-lists/a/abstract-products', [], true],
    ['/concrete-products/1?include=abstract-products,x', [], true],
    ['/concrete-products/1', [], false],
    ['/stores', [], false],
    ['/abstract-products/134', ['Authorization', 'Bearer x'], false],
    ['/abstract-products/134', ['Cookie', 'a=b'], false],
    ['/abstract-products/134', ['X-Agent-Authorization', 'Bearer x'], false],
    ['/guest-carts/1?include=abstract-products', ['X-Anonymous-Customer-Unique-Id', 'x'], false],
    ['/abstract-products/134', ['Store', 'DE'], true],
    ['/abstract-products/134?_store=DE&fields[abstract-products]=url', [], true],
    ['/abstract-products/134?_store=DE', ['Store', 'DE'], true],
    ['/abstract-products/134?_store=AT', ['Store', 'DE'], false],
    ['/abstract-products/134?_store=%ff', [], false],
    // All of these are `_store` to PHP, or may be.
    ['/abstract-products/134?.store=AT', [], false],
    ['/abstract-products/134?x=1&%2Estore=AT', [], false],
    ['/abstract-products/134?%5Fstore=AT', ['Store', 'DE'], false],
    ['/abstract-products/134?_store[]=AT', [], false],
    ['/abstract-products/134?_store%00=AT', [], false],
    ['/abstract-products/134?+_store=AT', [], false],
    ['/abstract-products/134?[store=AT', [], false],
    ['/abstract-products/134', ['Store', 'unknown'], false],
  ])('of %s with %j: %s', (target, fields, isThere) => {
    expect(from(target, fields) !== undefined).toBe(isThere);
  });

  it.each<[string, Record<string, string>, boolean]>([
    ['the fields of a shop', { 'Cache-Control': 'no-cache, private' }, true],
    ['a charset', { 'Content-Type': 'application/json; charset=utf-8' }, true],
    ['no language', { 'Content-Language': '' }, true],
    ['no-store', { 'Cache-Control': 'no-store' }, false],
    ['no-store with more', { 'Cache-Control': 'no-cache, NO-STORE , private' }, false],
    ['private on purpose', { 'Cache-Control': 'max-age=0, must-revalidate, private' }, false],
    ['a cookie', { 'Set-Cookie': 'session=1' }, false],
    ['another language', { 'Content-Language': 'fr_FR' }, false],
    ['another language that begins alike', { 'Content-Language': 'enm' }, false],
    ['HTML', { 'Content-Type': 'text/html' }, false],
    ['no type', { 'Content-Type': '' }, false],
    ['a content coding', { 'Content-Encoding': 'gzip' }, false],
    ['Vary: *', { Vary: '*' }, false],
  ])('from a response with %s: %#', async (_, changes, isLearnt) => {
    const fields = Object.entries({ ...Object.fromEntries(pairsOf(plain)), ...changes })
      .filter(([, value]) => value !== '')
      .flat();
    from('/abstract-products/134')?.learn(fields, body);
    // Lessons are taken in order: behind this one the other has been learnt, or never will be.
    from('/abstract-products/135')?.learn(plain, Buffer.from(JSON.stringify({ data: product('/last') })));
    await until(async () => resolver.stats().learnt === (isLearnt ? 2 : 1));
    expect((await resolve(resolver, targetOf('/en/acer'))).status).toBe(isLearnt ? 200 : 404);
  });

  it('is off by default', () => {
    const untaught = createUrlResolver({ upstream: { ask: shop.ask } });
    expect(untaught.startLesson(requestFor('/abstract-products/134'))).toBeUndefined();
  });

  it('adds a mapping for its own locale, and takes the place of "not found"', async () => {
    expect((await resolve(resolver, targetOf('/en/acer'))).status).toBe(404);
    from('/abstract-products/134')?.learn(plain, body);
    await until(async () => resolver.stats().learnt === 1);
    const answer = await resolve(resolver, targetOf('/en/acer'));
    expect(entityOf(answer.body)).toEqual(['abstract-products', '134']);
    expect(shop.requests.length).toBe(1);
    const german = { fields: ['Accept-Language', 'de'] };
    expect((await resolve(resolver, targetOf('/en/acer'), german)).status).toBe(404);
  });

  it('does not outlive a purge that came after its request', async () => {
    const lesson = from('/abstract-products/134');
    await resolver.purge({ url: '/en/acer' });
    lesson?.learn(plain, body);
    from('/abstract-products/1')?.learn(plain, Buffer.from(JSON.stringify({ data: product('/en/other') })));
    await until(async () => resolver.stats().learnt === 1);
    expect((await resolve(resolver, targetOf('/en/acer'))).status).toBe(404);
  });

  it('does no work for the caller, and has bounded room', async () => {
    for (let i = 0; i < 50; i += 1) from('/abstract-products/134')?.learn(plain, body);
    expect(resolver.stats()).toMatchObject({ learnt: 0, lessonsDropped: 34 });
    from('/abstract-products/134')?.learn(plain, Buffer.alloc(300_000));
    expect(resolver.stats().lessonsDropped).toBe(35);
    await until(async () => resolver.stats().learnt === 1);
  });
});

function pairsOf(fields: readonly string[]): [string, string][] {
  return fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] ?? '']] : []));
}

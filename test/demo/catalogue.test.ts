import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop({ resolverLatencyMs: 0 });
});
afterAll(() => shop.close());

describe('public resources', () => {
  it.each([
    ['/abstract-products/134', 'abstract-products', '134'],
    ['/abstract-products/134/related-products', 'abstract-products', '087'],
    ['/abstract-products/134/abstract-product-prices', 'abstract-product-prices', '134'],
    ['/abstract-products/134/abstract-product-availabilities', 'abstract-product-availabilities', '134'],
    ['/abstract-products/001/product-reviews', 'product-reviews', '21'],
    ['/concrete-products/134_29759322', 'concrete-products', '134_29759322'],
    ['/concrete-products/134_29759322/concrete-product-prices', 'concrete-product-prices', '134_29759322'],
    [
      '/concrete-products/134_29759322/concrete-product-availabilities',
      'concrete-product-availabilities',
      '134_29759322',
    ],
    ['/catalog-search?q=canon', 'catalog-search', null],
    ['/catalog-search-suggestions?q=canon', 'catalog-search-suggestions', null],
    ['/category-trees', 'category-trees', null],
    ['/category-nodes/5', 'category-nodes', '5'],
    ['/cms-pages', 'cms-pages', '8d378933-22f9-54c7-b45e-db68f2d5d9a3'],
    ['/navigations/MAIN_NAVIGATION', 'navigations', 'MAIN_NAVIGATION'],
    ['/merchants', 'merchants', 'MER000001'],
    ['/merchants/MER000005', 'merchants', 'MER000005'],
    ['/stores', 'stores', 'DE'],
    ['/stores/AT', 'stores', 'AT'],
    ['/customer-access', 'customer-access', null],
    ['/cart-permission-groups', 'cart-permission-groups', '1'],
    ['/return-reasons', 'return-reasons', null],
    ['/company-business-units', 'company-business-units', 'e02b3c8a-6f5d-51e9-9d8f-1a2b3c4d0001'],
    ['/url-resolver?url=/en/computer', 'url-resolver', null],
  ])('answer GET %s', async (path, type, id) => {
    const reply = await send(shop, `GET ${path}`);
    expect(reply.status).toBe(200);
    expect([reply.json.data].flat()[0]).toMatchObject({ type, id });
  });

  it.each(['/access-tokens', '/refresh-tokens'])('GET %s is an empty collection', async (path) => {
    expect((await send(shop, `GET ${path}`)).json).toEqual({ data: [], links: { self: shop.url + path } });
  });

  it.each([
    ['de-DE,de;q=0.9,en;q=0.8', 'de_DE', 'Häfen des Nordens, ein Bildband'],
    ['fr, en;q=0.5, de;q=0.1', 'en_US', 'Harbours of the north, a picture book'],
    ['', 'en_US', 'Harbours of the north, a picture book'],
  ])('speak the language of Accept-Language: %s', async (acceptLanguage, contentLanguage, name) => {
    const headers = { 'accept-language': acceptLanguage };
    const reply = await send(shop, 'GET /abstract-products/301', { headers });
    expect(reply.headers.get('content-language')).toBe(contentLanguage);
    expect(reply.json.data.attributes.name).toBe(name);
  });

  it.each(['constructor', '__proto__', 'toString,items', ','])(
    'include nothing for %s alone',
    async (names) => {
      const reply = await send(shop, `GET /carts?include=${names}&fields[__proto__]=x`);
      expect(reply.status).toBe(200);
      expect('included' in reply.json).toBe(names.includes('items'));
    },
  );

  it('include and thin out what the query asks for', async () => {
    const query = 'include=items,concrete-products,abstract-products&fields[abstract-products]=url';
    const { data, included } = (await send(shop, `GET /carts/61ab15e9-e24a-5dec-a1ef-fc333bd88b02?${query}`))
      .json;
    expect(data.relationships.items.data).toEqual([{ type: 'items', id: '134_29759322' }]);
    const abstract = included.find((each: { type: string }) => each.type === 'abstract-products');
    expect(abstract).toMatchObject({ id: '134', attributes: { url: '/en/acer-aspire-s7-134' } });
    expect(Object.keys(abstract.attributes)).toEqual(['url']);
  });
});

describe('product reviews', () => {
  it('are averaged, and shown once approved', async () => {
    const attributes = { rating: 1, summary: 'Broken', nickname: 'Karl' };
    const body = resource('product-reviews', attributes);
    const reply = await send(shop, 'POST /abstract-products/001/product-reviews', { body });
    expect(reply.status).toBe(202);
    expect((await send(shop, 'GET /abstract-products/001/product-reviews')).json.data).toHaveLength(2);
    const product = (await send(shop, 'GET /abstract-products/001')).json.data.attributes;
    expect(product).toMatchObject({ averageRating: 4.5, reviewCount: 2 });
  });
});

describe('up-selling', () => {
  it('offers what goes with the cart and is not in it', async () => {
    const reply = await send(shop, 'GET /carts/61ab15e9-e24a-5dec-a1ef-fc333bd88b01/up-selling-products');
    expect(reply.json.data.map((product: { id: string }) => product.id)).toEqual(['020']);
  });
});

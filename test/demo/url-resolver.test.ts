import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop({ resolverLatencyMs: 0 });
});
afterAll(() => shop.close());

const returnPolicy = '8d378933-22f9-54c7-b45e-db68f2d5d9a3';

describe('url-resolver', () => {
  it.each([
    ['/de/acer-aspire-s7-134', 'abstract-products', '134'],
    ['/en/computer', 'category-nodes', '5'],
    ['/en/return-policy', 'cms-pages', returnPolicy],
    ['/en/merchant/budget-cameras', 'merchants', 'MER000005'],
    ['%2Fen%2Fcomputer', 'category-nodes', '5'],
    ['%252Fen%252Fcomputer', 'category-nodes', '5'],
    ['/EN/Computer', 'category-nodes', '5'],
    ['%20/en/computer%20', 'category-nodes', '5'],
    ['/en/cameras-%26-camcorders', 'category-nodes', '2'],
    ["/en/computer/pc's/workstations", 'category-nodes', '7'],
    ['/en/computer/pc-s/workstations', 'category-nodes', '7'],
    ['/en/old-canon-ixus', 'abstract-products', '001'],
    ['/en/computer&url=/en/privacy', 'cms-pages', '1e9fb640-9073-55f4-a2d2-535090c92025'],
  ])('resolves %s', async (url, entityType, entityId) => {
    const reply = await send(shop, `GET /url-resolver?url=${url}`);
    expect([reply.status, reply.reason]).toEqual([200, 'OK']);
    expect(reply.headers.get('content-type')).toBe('application/vnd.api+json');
    expect(reply.json.data).toHaveLength(1);
    expect(reply.json.data[0]).toMatchObject({
      type: 'url-resolver',
      id: null,
      attributes: { entityType, entityId },
    });
    expect(reply.json.data[0].links.self).toBe(reply.json.links.self);
  });

  it.each([
    ['?url=/en/unknown', 404, '2802'],
    ['?url=en/computer', 404, '2802'],
    ['?url=/en/computer/', 404, '2802'],
    ['?url=/en/cameras-&-camcorders', 404, '2802'],
    ['?url=https://shop.example/en/computer', 404, '2802'],
    ['?url=/en/elsewhere', 404, '2802'],
    ['?url=/en/pick-up-in-vienna', 404, '2802'],
    ['?url=%20', 404, '2802'],
    ['', 422, '2801'],
    ['?url=', 422, '2801'],
    ['?url=0', 422, '2801'],
    ['?uri=/en/computer', 422, '2801'],
  ])('refuses %s', async (query, status, code) => {
    const reply = await send(shop, `GET /url-resolver${query}`);
    expect([reply.status, reply.json.errors[0].code]).toEqual([status, code]);
  });

  it('fails on a list, as PHP does', async () => {
    const reply = await send(shop, 'GET /url-resolver?url[]=/en/computer');
    expect([reply.status, reply.text]).toEqual([500, 'Internal Server Error']);
  });

  it.each([
    ['Store field', '', { store: 'AT' }],
    ['_store parameter', '&_store=AT', {}],
  ])('looks in the store that the %s names', async (_, query, headers) => {
    const reply = await send(shop, `GET /url-resolver?url=/en/pick-up-in-vienna${query}`, { headers });
    expect(reply.json.data[0].attributes.entityType).toBe('cms-pages');
  });

  it('writes its own domain and the decoded query into links', async () => {
    const reply = await send(shop, 'GET /url-resolver/?url=%2Fen%2Fcameras-%26-camcorders&include=x');
    expect(reply.json.links.self).toBe(`${shop.url}/url-resolver?url=/en/cameras-&-camcorders&include=x`);
  });
});

import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { startEchoUpstream } from '../harness/echo-upstream.ts';
import { callShop, jsonOf, outcomeOf } from '../harness/shop-client.ts';
import { listOf } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

it('the list for clients changes with a reload, and challenges name the metadata', async () => {
  const upstream = await startEchoUpstream();
  const config = { publicUrl: 'https://api.shop.example' };
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config,
    rows: ['GET /orders'],
  });
  const list = (ifNoneMatch?: string) => callShop(shopward.port, 'GET /protected-resources', { ifNoneMatch });
  try {
    const first = await list();
    expect(first.status).toBe(200);
    expect(jsonOf(first).data).toEqual([
      {
        type: 'protected-resources',
        id: 'GET /orders',
        attributes: { group: 'Test', method: 'GET', path: '/orders', scopes: [] },
      },
    ]);
    const tag = first.field('etag');
    const known = await list(tag);
    expect([known.status, known.field('etag'), known.body.length]).toEqual([304, tag, 0]);

    const rows = ['GET /orders', { match: 'GET /stores', scopes: ['analyst'] }];
    await writeFile(shopward.listFile, listOf(rows));
    await shopward.waitForLog(({ event }) => event === 'list-reloaded');
    const second = await list(tag);
    expect(second.status).toBe(200);
    expect(jsonOf(second).data.at(-1)).toMatchObject({
      id: 'GET /stores',
      attributes: { scopes: ['analyst'] },
    });
    const challenged = await callShop(shopward.port, 'GET /stores');
    expect(outcomeOf(challenged)).toBe('401 002');
    const metadata = 'https://api.shop.example/.well-known/oauth-protected-resource';
    expect(challenged.field('www-authenticate')).toContain(`resource_metadata="${metadata}"`);
    const described = await callShop(shopward.port, 'GET /.well-known/oauth-protected-resource');
    expect([described.status, jsonOf(described).resource]).toEqual([200, 'https://api.shop.example']);
  } finally {
    await shopward.stop();
    await upstream.close();
  }
});

it('without publicUrl: conditions, HEAD, other methods and paths, and metadata that names the requested host', async () => {
  const upstream = await startEchoUpstream();
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /carts/{cart_id}', { match: 'ANY /carts/{cart_id}/**', scopes: ['customer', 'analyst'] }],
  });
  const ask = (line: string, ifNoneMatch?: string) => callShop(shopward.port, line, { ifNoneMatch });
  try {
    const list = await ask('GET /protected-resources');
    expect([list.field('content-type'), list.field('cache-control')]).toEqual([
      'application/vnd.api+json',
      'no-cache',
    ]);
    const rows = jsonOf(list).data.map(({ id }: { id: string }) => id);
    expect(rows).toEqual(['GET /carts/{cart_id}', 'ANY /carts/{cart_id}/**']);
    const tag = list.field('etag') ?? '';
    for (const [given, status] of [
      [`W/${tag}`, 304],
      [`"a,b", W/"c" ,${tag}`, 304],
      ['*', 304],
      ['"other"', 200],
      [tag.slice(1, -1), 200],
    ] as const)
      expect([given, (await ask('GET /protected-resources', given)).status]).toEqual([given, status]);

    const head = await ask('HEAD /protected-resources');
    expect([head.status, head.field('etag'), head.body.length]).toEqual([200, tag, 0]);
    for (const line of ['POST /protected-resources', 'GET /protected-resources/x'])
      expect([line, (await ask(line)).field('etag')]).toEqual([line, undefined]);

    const metadata = await ask('GET /.well-known/oauth-protected-resource');
    expect(jsonOf(metadata)).toMatchObject({
      resource: expect.stringMatching(/^http:\/\/[^/]+$/),
      scopes_supported: ['customer', 'analyst'],
      bearer_methods_supported: ['header'],
    });
    expect(metadata.field('vary')).toContain('Host');
  } finally {
    await shopward.stop();
    await upstream.close();
  }
});

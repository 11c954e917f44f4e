import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { startEchoUpstream } from '../harness/echo-upstream.ts';
import { callShop, jsonOf, outcomeOf } from '../harness/shop-client.ts';
import { listOf } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

it('the protected list for clients follows a hot reload at once, and challenges name the metadata', async () => {
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

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop({ enforceTags: true });
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

const path = `/carts/${cartIds.everyday}`;

async function tagOf(line: string, body?: object): Promise<string | null> {
  return (await send(shop, line, body === undefined ? {} : { body })).headers.get('etag');
}

function rename(name: string, ifMatch?: string) {
  const headers: Record<string, string> = ifMatch === undefined ? {} : { 'if-match': ifMatch };
  return send(shop, `PATCH ${path}`, { body: resource('carts', { name }), headers });
}

describe('the shop’s own entity tags', () => {
  it('are off unless switched on', async () => {
    const plain = await startDemoShop();
    const reply = await send(plain, `GET ${path}`);
    expect(reply.headers.get('etag')).toBeNull();
    const body = resource('carts', { name: 'x' });
    expect((await send(plain, `PATCH ${path}`, { body, headers: { 'if-match': '"x"' } })).status).toBe(200);
    await plain.close();
  });

  it('guard PATCH', async () => {
    const first = await tagOf(`GET ${path}`);
    expect(first).toMatch(/^"[0-9a-f]{32}"$/);
    expect((await rename('x')).json.errors[0]).toMatchObject({ status: 428, code: '005' });
    expect((await rename('x', '"x"')).json.errors[0]).toMatchObject({ status: 412, code: '006' });
    const changed = await rename('x', String(first));
    expect(changed.status).toBe(200);
    expect(changed.headers.get('etag')).not.toBe(first);
    expect((await rename('y', String(first))).status).toBe(412);
  });

  it.each([
    ['bare', (tag: string) => tag.replaceAll('"', ''), 200],
    ['weak', (tag: string) => `W/${tag}`, 412],
    ['any', () => '*', 412],
    ['in a list', (tag: string) => `${tag}, "x"`, 412],
  ])('accept a tag that is %s or not', async (_, write, status) => {
    const tag = String(await tagOf(`GET ${path}`));
    expect((await rename('x', write(tag))).status).toBe(status);
  });

  it('come with one cart only, and with changes of its items', async () => {
    expect(await tagOf('GET /carts')).toBeNull();
    expect(await tagOf('GET /stores/DE')).toBeNull();
    const before = await tagOf(`GET ${path}`);
    const after = await tagOf(`POST ${path}/items`, resource('items', { sku: '218_1233', quantity: 1 }));
    expect(after).toMatch(/^"/);
    expect(after).not.toBe(before);
  });

  it('miss changes that do not answer with the cart, as in a real shop', async () => {
    const before = await tagOf(`GET ${path}`);
    await send(shop, `DELETE ${path}/items/218_1233`);
    expect(await tagOf(`GET ${path}`)).toBe(before);
  });

  it('come back when a cart does, as in a real shop', async () => {
    const first = String(await tagOf(`GET ${path}`));
    const second = (await rename('x', first)).headers.get('etag');
    expect((await rename('Everyday purchases', String(second))).headers.get('etag')).toBe(first);
  });

  it('refuse a cart that is not there before it is looked for', async () => {
    const body = resource('carts', { name: 'x' });
    const reply = await send(shop, 'PATCH /carts/unknown', { body, headers: { 'if-match': '"x"' } });
    expect(reply.status).toBe(412);
  });

  it('leave DELETE alone unless told not to', async () => {
    shop.settings.tagMethods = ['PATCH', 'DELETE'];
    expect((await send(shop, `DELETE ${path}`)).status).toBe(428);
    shop.settings.tagMethods = ['PATCH'];
    expect((await send(shop, `DELETE ${path}`)).status).toBe(204);
  });
});

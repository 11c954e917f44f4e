import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds } from '../../demo/data/ids.ts';
import { createSettings, type ShopSettings } from '../../demo/settings.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send, sendRaw, statusOf } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => {
  shop.reset();
  const { domain } = shop.settings;
  Object.assign(shop.settings, createSettings({ domain }));
});
afterAll(() => shop.close());

async function nameOf(cart: string): Promise<string> {
  return (await send(shop, `GET /carts/${cart}`)).json.data.attributes.name;
}

async function rename(): Promise<number | 'cut'> {
  const body = resource('carts', { name: 'Renamed' });
  return await send(shop, `PATCH /carts/${cartIds.everyday}`, { body }).then(
    (reply) => reply.status,
    () => 'cut' as const,
  );
}

describe('failures', () => {
  it.each([
    ['before the work', { failNext: 1, failStatus: 503 }, 503, 'Everyday purchases'],
    ['after the work', { failNext: 1, failStatus: 502, failAfterWork: true }, 502, 'Renamed'],
    ['a reset before any byte', { resetNext: 1, resetAt: 'before-answer' }, 'cut', 'Everyday purchases'],
    [
      'a reset before any byte, after the work',
      { resetNext: 1, resetAt: 'before-answer', failAfterWork: true },
      'cut',
      'Renamed',
    ],
    ['a reset in the middle of the body', { resetNext: 1 }, 'cut', 'Renamed'],
  ] as const)('%s', async (_, change: Partial<ShopSettings>, outcome, name) => {
    Object.assign(shop.settings, change);
    expect(await rename()).toBe(outcome);
    expect([shop.settings.failNext, shop.settings.resetNext]).toEqual([0, 0]);
    expect(await nameOf(cartIds.everyday)).toBe(name);
  });

  it('sends half of the body and no more when it cuts it', async () => {
    shop.settings.resetNext = 1;
    const raw = await sendRaw(shop, 'GET /stores HTTP/1.1\r\nAccept: */*');
    const [head = '', body = ''] = raw.split('\r\n\r\n');
    const announced = Number(/content-length: (\d+)/i.exec(head)?.[1]);
    expect(statusOf(raw)).toBe(200);
    expect(body.length).toBe(Math.ceil(announced / 2));
  });

  it('all happen at a rate of one and none at a rate of zero', async () => {
    shop.settings.failRate = 1;
    expect((await send(shop, 'GET /stores')).status).toBe(500);
    shop.settings.failRate = 0;
    expect((await send(shop, 'GET /stores')).status).toBe(200);
  });

  it('leave the key set alone, which has a switch of its own', async () => {
    shop.settings.failNext = 1;
    expect((await fetch(shop.jwksUrl)).status).toBe(200);
    expect(shop.settings.failNext).toBe(1);
    shop.settings.jwksStatus = 503;
    expect((await fetch(shop.jwksUrl)).status).toBe(503);
  });
});

describe('latency', () => {
  it.each([
    ['of every answer', { latencyMs: 3_600_000 }, '/stores'],
    ['of url-resolver', { resolverLatencyMs: 3_600_000 }, '/url-resolver?url=/en/computer'],
  ])('%s holds it back, and closing the shop does not wait for it', async (_, change, path) => {
    const slow = await startDemoShop(change);
    const outcome = send(slow, `GET ${path}`).then(
      () => 'answered',
      () => 'cut',
    );
    while (slow.received.total === 0) await new Promise((resolve) => setImmediate(resolve));
    await slow.close();
    expect(await outcome).toBe('cut');
  });

  it('is 150 ms for url-resolver by default', () => {
    expect(createSettings({})).toMatchObject({ latencyMs: 0, resolverLatencyMs: 150 });
  });
});

describe('the control address', () => {
  const control = (line: string, body?: object) => {
    const [method = 'GET', path = '/'] = line.split(' ');
    return fetch(shop.controlUrl + path, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  };

  it('changes settings as a whole or not at all', async () => {
    expect((await control('POST /settings', { failNext: 1, failStatus: 503 })).status).toBe(200);
    expect(await rename()).toBe(503);
    const refused = await control('POST /settings', { latencyMs: 1, failNext: 'x', nonsense: 1 });
    expect([refused.status, await refused.json()]).toEqual([
      422,
      { problems: ['failNext: expected a number', 'nonsense: unknown setting'] },
    ]);
    expect(shop.settings.latencyMs).toBe(0);
  });

  it.each([
    [{ failRate: -1 }, 'failRate: expected a number of at least 0'],
    [{ failStatus: 99 }, 'failStatus: expected a status of 200 to 599'],
    [{ resetAt: 'x' }, 'resetAt: before-answer or mid-body'],
    [{ tagMethods: [1] }, 'tagMethods: a list of methods'],
    [{ enforceTags: 'yes' }, 'enforceTags: expected a boolean'],
  ])('refuses %j', async (change, problem) => {
    expect(await (await control('POST /settings', change)).json()).toEqual({ problems: [problem] });
  });

  it('shows and forgets what was received, reseeds, rotates', async () => {
    await control('DELETE /received');
    await rename();
    const seen = (await (await control('GET /received')).json()) as { total: number; byRoute: object };
    expect(seen).toMatchObject({ total: 1, byRoute: { 'PATCH /carts/{id}': 1 } });
    await control('POST /reset');
    expect(await nameOf(cartIds.everyday)).toBe('Everyday purchases');
    const rotated = (await (await control('POST /rotate-keys', { keepOld: false })).json()) as {
      keys: object[];
    };
    expect(rotated.keys).toHaveLength(1);
    expect((await control('GET /nonsense')).status).toBe(404);
  });

  it('is not part of the shop and can be left out', async () => {
    expect((await send(shop, 'GET /settings')).status).toBe(404);
    const other = await startDemoShop({ controlPort: false });
    expect(other.controlUrl).toBeNull();
    await other.close();
  });
});

describe('PHP’s JSON', () => {
  it('is equal in meaning and not in bytes', async () => {
    const plain = await send(shop, 'GET /category-trees');
    shop.settings.phpJson = true;
    const escaped = await send(shop, 'GET /category-trees');
    expect(escaped.json).toEqual(plain.json);
    expect(escaped.text).toContain('\\/en\\/cameras-\\u0026-camcorders');
    expect(escaped.text).toContain('Pc\\u0027s');
  });
});

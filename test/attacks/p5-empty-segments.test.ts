import { expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';

const stage = useAttackStage();
const goodToken = () => `Authorization: Bearer ${stage.shopward.issueToken()}`;

/** P5: this shop ignores slashes at both ends and takes an inner `//` for an empty id; other servers merge them. */
it.each([
  ...['GET //orders', 'GET ///orders', 'GET /orders/', 'GET /orders//', 'GET //orders//', 'GET /orders//1'],
  ...['GET /orders///1', 'GET //orders//1//', 'GET /carts//up-selling-products', 'DELETE /carts/1//items/x'],
  ...['POST /carts//items', 'GET /customers//addresses', 'PATCH /customers//', 'GET //shop/orders/1'],
  ...['GET //shop.example/orders/1', 'DELETE /shopping-lists//shopping-list-items', 'POST /returns/'],
])('P5: %s needs a token', async (line) => {
  await stage.demandsToken(request(line, ['Content-Type: application/json']));
});

/** Nothing tracked has an empty id: the shop says this, too, before it asks anybody for a token. */
it.each([
  'PATCH /carts/',
  'PATCH /carts//',
  'DELETE /carts/',
  'PATCH /carts//items/1',
  'DELETE /carts//items/x',
  'DELETE /carts//vouchers/x/',
])('P5: %s has no id, with any token or none', async (line) => {
  const json = ['Content-Type: application/json'];
  for (const fields of [json, [...json, 'Authorization: Bearer bad'], [...json, goodToken()]]) {
    const { body } = await stage.refuses(request(line, fields), 400, 'resource-id-missing');
    expect(JSON.parse(body.toString()).errors[0].detail).toBe('Resource id is not specified.');
  }
});

it.each(['POST /carts//items', 'POST /carts//vouchers', 'POST /carts/', 'PATCH /carts/1/items/'])(
  'P5: %s with a token is for the shop to decide',
  async (line) => {
    const fields = ['Content-Type: application/json', 'Content-Length: 0', goodToken()];
    expect((await stage.passes(request(line, fields))).requestLine).toBe(`${line} HTTP/1.1`);
  },
);

it.each(['PATCH /carts//1', 'PATCH /carts/1/', 'DELETE /carts/1//'])(
  'P5: %s may change a cart, and is no way round its tag',
  async (line) => {
    const fields = ['Content-Type: application/json', 'If-Match: "t"', goodToken()];
    await stage.refuses(request(line, fields), 400, 'lenient-spelling');
  },
);

it.each([
  ['/stores//x/', '/stores//x/'],
  ['///stores//x//', '/stores//x//'],
  ['//', '/'],
])('P5: %s goes on as %s', async (target, forwarded) => {
  expect((await stage.passes(request(`GET ${target}`))).requestLine).toBe(`GET ${forwarded} HTTP/1.1`);
});

import { expect, it } from 'vitest';
import { request, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const goodToken = () => `Authorization: Bearer ${stage.shopward.issueToken()}`;

/** P5: this shop ignores slashes at both ends and reads an inner `//` as an empty id; other servers merge slashes. */
it.each([
  ...['GET //orders', 'GET ///orders', 'GET /orders/', 'GET /orders//', 'GET //orders//', 'GET /orders//1'],
  ...['GET /orders///1', 'GET //orders//1//', 'GET /carts//up-selling-products', 'DELETE /carts/1//items/x'],
  ...['POST /carts//items', 'GET /customers//addresses', 'PATCH /customers//', 'GET //shop/orders/1'],
  ...['GET //shop.example/orders/1', 'DELETE /shopping-lists//shopping-list-items', 'POST /returns/'],
])('P5: %s needs a token', async (line) => {
  await stage.demandsToken(request(line, ['Content-Type: application/json']));
});

/** A change of a tracked path has one spelling, whether the shop merges slashes or reads an empty id. */
it.each([
  ...['PATCH /carts/', 'PATCH /carts//', 'DELETE /carts/', 'PATCH /carts//items/1', 'DELETE /carts//items/x'],
  ...['DELETE /carts//vouchers/x/', 'POST /carts//items', 'POST /carts//vouchers', 'POST /carts/'],
  ...['PATCH /carts/1/items/', 'PATCH /carts//1', 'PATCH /carts/1/', 'DELETE /carts/1//', 'POST /carts//1'],
])('P5: 400 for %s, which may change a cart, with and without If-Match', async (line) => {
  const fields = ['Content-Type: application/json', 'Content-Length: 0', goodToken()];
  for (const more of [[], ['If-Match: "t"'], [`If-Match: "${'a'.repeat(32)}"`]])
    await stage.refuses(request(line, [...fields, ...more]), 400, 'lenient-spelling');
});

it.each([
  ['/stores//x/', '/stores//x/'],
  ['///stores//x//', '/stores//x//'],
  ['//', '/'],
])('P5: %s is forwarded as %s', async (target, forwarded) => {
  expect((await stage.passes(request(`GET ${target}`))).requestLine).toBe(`GET ${forwarded} HTTP/1.1`);
});

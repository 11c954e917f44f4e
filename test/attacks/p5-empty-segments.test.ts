import { expect, it } from 'vitest';
import { request, useAttackStage } from '../harness/attack-stage.ts';

const stage = useAttackStage();

/** P5: this shop ignores slashes at both ends and takes an inner `//` for an empty id; other servers merge them. */
it.each([
  ...['GET //orders', 'GET ///orders', 'GET /orders/', 'GET /orders//', 'GET //orders//', 'GET /orders//1'],
  ...[
    'GET /orders///1',
    'GET //orders//1//',
    'GET /carts//up-selling-products',
    'DELETE /carts//items/x',
    'DELETE /carts/1//items/x',
  ],
  ...[
    'PATCH /carts//',
    'POST /carts//items',
    'GET /customers//addresses',
    'PATCH /customers//',
    'GET //shop/orders/1',
  ],
  ...['GET //shop.example/orders/1', 'DELETE /shopping-lists//shopping-list-items', 'POST /returns/'],
])('P5: %s needs a token', async (line) => {
  await stage.demandsToken(request(line, ['Content-Type: application/json']));
});

it.each([
  ['/stores//x/', '/stores//x/'],
  ['///stores//x//', '/stores//x//'],
  ['//', '/'],
])('P5: %s goes on as %s', async (target, forwarded) => {
  expect((await stage.passes(request(`GET ${target}`))).requestLine).toBe(`GET ${forwarded} HTTP/1.1`);
});

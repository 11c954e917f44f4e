import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  cartIds,
  companyIds,
  companyUserIds,
  orderIds,
  orderItemIds,
  sharedCartIds,
  shoppingListIds,
  wishlistIds,
} from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, type Send, send, sendRaw, statusOf } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

const cart = `/carts/${cartIds.everyday}`;
const addItem = (attributes: object): Send => ({ body: resource('items', attributes) });
const addCode = (code: string): Send => ({ body: resource('vouchers', { code }) });
const share = (idCompanyUser: string, idCartPermissionGroup: number): Send => ({
  body: resource('shared-carts', { idCompanyUser, idCartPermissionGroup }),
});
const newReturn = (salesOrderItemUuid: string): Send => ({
  body: resource('returns', { store: 'DE', returnItems: [{ salesOrderItemUuid, reason: 'x' }] }),
});
const newPassword = (password: string, next: string, again = next): Send => ({
  body: resource('customer-password', { password, newPassword: next, confirmPassword: again }),
});
const newCart = (change: object): Send => ({
  body: resource('carts', { name: 'x', priceMode: 'GROSS_MODE', currency: 'EUR', store: 'DE', ...change }),
});

const tooLong = 'x'.repeat(2 * 1024 * 1024 + 1);

/** Request line, what is sent, status, code (`undefined`: the shop sends none). */
const refusals: readonly (readonly [string, Send, number, string | undefined])[] = [
  ['GET /nothing-here', {}, 404, undefined],
  ['GET /', {}, 404, undefined],
  ['PUT /carts', {}, 404, undefined],
  ['GET /Carts', {}, 404, undefined],
  ['GET /%63arts', {}, 404, undefined],
  ['POST /carts', { body: '{' }, 400, undefined],
  ['POST /carts', { body: {} }, 400, undefined],
  ['POST /carts', { body: resource('wishlists', {}) }, 400, undefined],
  [`POST ${cart}`, newCart({}), 404, undefined],
  ['PATCH /carts', newCart({}), 400, undefined],
  ['DELETE /carts', {}, 400, undefined],
  ['DELETE /refresh-tokens', {}, 400, undefined],
  ['DELETE /customers//addresses/x', {}, 400, undefined],
  ['POST /carts//items', addItem({ sku: '218_1233', quantity: 1 }), 400, '104'],
  ['GET /customers//carts', {}, 403, '802'],
  ['GET /carts//up-selling-products', {}, 400, '104'],
  ['POST /carts', newCart({ priceMode: 'FREE' }), 422, '119'],
  ['POST /carts', newCart({ currency: 'USD' }), 422, '117'],
  ['POST /carts', newCart({ store: 'FR' }), 422, '112'],
  ['POST /carts', { body: resource('carts', {}) }, 422, '901'],
  [`PATCH ${cart}`, { body: resource('carts', { priceMode: 'NET_MODE' }) }, 422, '111'],
  [`PATCH ${cart}`, { body: resource('carts', { name: '' }) }, 422, '901'],
  ['GET /carts/unknown', {}, 404, '101'],
  [`GET /carts/${cartIds.foreign}`, {}, 404, '101'],
  [`DELETE /carts/${cartIds.foreign}`, {}, 404, '101'],
  [`POST /carts/${cartIds.foreign}/items`, addItem({ sku: '218_1233', quantity: 1 }), 404, '101'],
  [`POST ${cart}/items`, addItem({ sku: 'unknown', quantity: 1 }), 422, '102'],
  [`POST ${cart}/items`, addItem({ sku: '005_30663302', quantity: 1 }), 422, '113'],
  [`POST ${cart}/items`, addItem({ sku: '218_1233', quantity: 0 }), 422, '901'],
  [`POST ${cart}/items`, addItem({ sku: '218_1233', quantity: '1' }), 422, '901'],
  [`PATCH ${cart}/items/unknown`, addItem({ quantity: 1 }), 404, '103'],
  [`DELETE ${cart}/items/unknown`, {}, 404, '103'],
  [`POST ${cart}/vouchers`, addCode('unknown'), 422, '3302'],
  [`POST ${cart}/vouchers`, addCode('GIFT-50'), 422, '3302'],
  [`POST /carts/${cartIds.forgotten}/vouchers`, addCode('SAVE5'), 422, '3302'],
  [`DELETE ${cart}/vouchers/SAVE5`, {}, 422, '3301'],
  [`POST ${cart}/shared-carts`, share('unknown', 1), 404, '1404'],
  [`POST ${cart}/shared-carts`, share(companyUserIds.spencor, 1), 403, '2703'],
  [`POST ${cart}/shared-carts`, share(companyUserIds.karl, 9), 422, '2501'],
  [`POST /carts/${cartIds.office}/shared-carts`, share(companyUserIds.karl, 1), 422, '2702'],
  ['DELETE /shared-carts/unknown', {}, 404, '2705'],
  [`DELETE /shared-carts/${sharedCartIds.withKarl}`, { as: 'DE--22' }, 403, '2701'],
  ['GET /customers/DE--22', {}, 403, '411'],
  ['GET /customers/DE--22/addresses', {}, 403, '411'],
  ['GET /customers/DE--22/orders', {}, 403, '802'],
  ['GET /customers/DE--404', { as: 'DE--404' }, 404, '402'],
  ['GET /customers/DE--21/addresses/unknown', {}, 404, '404'],
  ['PATCH /customer-password/DE--21', newPassword('wrong-one', 'change1234'), 400, '408'],
  ['PATCH /customer-password/DE--21', newPassword('change123', 'change1234', 'other'), 422, '406'],
  ['PATCH /customer-password/DE--21', newPassword('change123', 'short'), 422, '901'],
  ['PATCH /customer-password/DE--22', newPassword('change123', 'change1234'), 403, '411'],
  [`GET /orders/${orderIds.foreign}`, {}, 404, '801'],
  ['GET /returns/unknown', {}, 404, '3602'],
  ['POST /returns', newReturn(orderItemIds.paper), 422, '3601'],
  ['POST /returns', newReturn(orderItemIds.returned), 422, '3601'],
  ['POST /returns', newReturn(orderItemIds.foreign), 422, '3601'],
  [`GET /wishlists/${wishlistIds.cameras}`, { as: 'DE--22' }, 404, '201'],
  ['POST /wishlists', { body: resource('wishlists', { name: 'Cameras' }) }, 422, '202'],
  [
    `POST /wishlists/${wishlistIds.cameras}/wishlist-items`,
    { body: resource('wishlist-items', { sku: 'x' }) },
    422,
    '206',
  ],
  [`DELETE /wishlists/${wishlistIds.cameras}/wishlist-items/x`, {}, 404, '208'],
  [`GET /shopping-lists/${shoppingListIds.weekly}`, { as: 'DE--22' }, 404, '1503'],
  ['POST /shopping-lists', { body: resource('shopping-lists', { name: 'Desk' }) }, 422, '1506'],
  [`DELETE /shopping-lists/${shoppingListIds.weekly}/shopping-list-items`, {}, 400, undefined],
  [`DELETE /shopping-lists/${shoppingListIds.weekly}/shopping-list-items/x`, {}, 404, '1504'],
  [`GET /companies/${companyIds.cityPrint}`, {}, 404, '1801'],
  [`GET /company-users/${companyUserIds.spencor}`, {}, 404, '1404'],
  ['GET /abstract-products/404', {}, 404, '301'],
  ['GET /abstract-products', {}, 400, '311'],
  [
    'POST /abstract-products/134/product-reviews',
    { body: resource('product-reviews', { rating: 6, summary: 'x', nickname: 'x' }) },
    422,
    '901',
  ],
  ['GET /category-nodes/404', {}, 404, '703'],
  ['GET /category-nodes/abc', {}, 400, '701'],
  ['GET /cms-pages/unknown', {}, 404, '3801'],
  ['GET /merchants/MER0', {}, 404, '3501'],
  ['GET /carts', { as: 'DE--21', headers: { 'x-anonymous-customer-unique-id': 'a' } }, 400, '005'],
  ['GET /carts', { headers: { 'content-type': 'application/vnd.api+json; version=9.9' } }, 404, undefined],
];

describe('refusals', () => {
  it.each(refusals)('%s %j -> %i %s', async (line, sent, status, code) => {
    const reply = await send(shop, line, sent);
    expect(reply.status).toBe(status);
    const error = reply.json.errors.at(-1);
    expect(error).toMatchObject({ status, detail: expect.any(String) });
    expect(error.code).toBe(code);
    if (status === 422) expect(reply.reason).toBe('Unprocessable Content');
  });

  it('names each attribute that does not hold', async () => {
    const reply = await send(shop, `POST ${cart}/items`, addItem({ quantity: -1 }));
    expect(reply.json.errors.map((error: { detail: string }) => error.detail)).toEqual([
      'sku => This field is missing.',
      'quantity => This value should be greater than 0.',
    ]);
  });

  it.each([
    ['no Accept', 'GET /stores HTTP/1.1', '', 406],
    ['an empty Content-Type', 'GET /stores HTTP/1.1\r\nAccept: */*\r\nContent-Type: ', '', 415],
    ['HEAD', 'HEAD /carts HTTP/1.1\r\nAccept: */*', '', 404],
    ['OPTIONS that is no preflight', 'OPTIONS /carts HTTP/1.1\r\nAccept: */*', '', 501],
    ['a body over the limit', `POST /carts HTTP/1.1\r\nContent-Length: ${tooLong.length}`, tooLong, 413],
  ])('answers %s', async (_, head, body, status) => {
    expect(statusOf(await sendRaw(shop, head, body))).toBe(status);
  });
});

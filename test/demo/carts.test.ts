import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds, companyUserIds, sharedCartIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

async function emptyCart(priceMode = 'GROSS_MODE', currency = 'EUR'): Promise<string> {
  const body = resource('carts', { name: 'Mine', priceMode, currency, store: 'DE' });
  return (await send(shop, 'POST /carts', { body })).json.data.id;
}

async function add(cart: string, sku: string, quantity: number) {
  return await send(shop, `POST /carts/${cart}/items`, { body: resource('items', { sku, quantity }) });
}

async function totalsOf(cart: string) {
  return (await send(shop, `GET /carts/${cart}`)).json.data.attributes.totals;
}

describe('totals', () => {
  // Gross: 1 x 99.99 + 2 x 12.90, tax 19 % included. Net: 84.03 + 2 x 10.84, and 15.97 + 4.12 of tax.
  it.each([
    ['GROSS_MODE', 'EUR', { subtotal: 12_579, taxTotal: 2008, grandTotal: 12_579, priceToPay: 12_579 }],
    ['GROSS_MODE', 'CHF', { subtotal: 14_467, taxTotal: 2310, grandTotal: 14_467, priceToPay: 14_467 }],
    ['NET_MODE', 'EUR', { subtotal: 10_571, taxTotal: 2009, grandTotal: 12_580, priceToPay: 12_580 }],
  ])('are computed from the items in %s and %s', async (mode, currency, expected) => {
    const cart = await emptyCart(mode, currency);
    expect(await totalsOf(cart)).toMatchObject({ subtotal: 0, taxTotal: 0, grandTotal: 0, discountTotal: 0 });
    await add(cart, '001_25904006', 1);
    expect((await add(cart, '209_12554247', 2)).json.data.attributes.totals).toMatchObject(expected);
  });

  it('follow every change of an item', async () => {
    const cart = await emptyCart();
    await add(cart, '209_12554247', 2);
    await add(cart, '209_12554247', 1);
    expect((await totalsOf(cart)).subtotal).toBe(3 * 1290);
    await send(shop, `PATCH /carts/${cart}/items/209_12554247`, { body: resource('items', { quantity: 1 }) });
    expect((await totalsOf(cart)).subtotal).toBe(1290);
    await send(shop, `DELETE /carts/${cart}/items/209_12554247`);
    expect((await totalsOf(cart)).subtotal).toBe(0);
  });

  it('take a percentage, a fixed amount and a gift card into account', async () => {
    const { attributes } = (await send(shop, `GET /carts/${cartIds.celebration}`)).json.data;
    // 2 x 39.00 + 399.00 = 477.00; less 10 % and 5.00; the gift card pays 50.00 of the rest.
    expect(attributes.totals).toMatchObject({
      subtotal: 47_700,
      discountTotal: 5270,
      grandTotal: 42_430,
      priceToPay: 37_430,
    });
    expect(attributes.discounts).toEqual([
      { displayName: '10% off in summer', amount: 4770, code: 'SUMMER10' },
      { displayName: '5 EUR off', amount: 500, code: 'SAVE5' },
    ]);
  });

  it('give each item its exact share of the discounts', async () => {
    const reply = await send(shop, `GET /carts/${cartIds.celebration}?include=items`);
    const shares = reply.json.included.map(
      (item: { attributes: { calculations: Record<string, number> } }) =>
        item.attributes.calculations.sumDiscountAmountAggregation,
    );
    expect(shares.reduce((sum: number, share: number) => sum + share, 0)).toBe(5270);
  });

  it('take 10 % off large carts without any code', async () => {
    const { attributes } = (await send(shop, `GET /carts/${cartIds.office}`)).json.data;
    expect(attributes.totals).toMatchObject({
      subtotal: 145_000,
      discountTotal: 14_500,
      grandTotal: 130_500,
    });
    expect(attributes.discounts[0].code).toBeNull();
  });

  it('never fall below zero', async () => {
    const cart = await emptyCart();
    await add(cart, '218_1233', 1);
    await send(shop, `POST /carts/${cart}/vouchers`, { body: resource('vouchers', { code: 'WELCOME20' }) });
    await send(shop, `POST /carts/${cart}/cart-codes`, { body: resource('cart-codes', { code: 'GIFT-50' }) });
    expect(await totalsOf(cart)).toMatchObject({
      discountTotal: 549,
      grandTotal: 0,
      priceToPay: 0,
      taxTotal: 0,
    });
  });
});

describe('codes', () => {
  it('are listed under the cart and gone after DELETE', async () => {
    const list = `/carts/${cartIds.celebration}/cart-codes`;
    const idsOf = async () =>
      (await send(shop, `GET ${list}`)).json.data.map((code: { id: string }) => code.id).toSorted();
    expect(await idsOf()).toEqual(['GIFT-50', 'SAVE5', 'SUMMER10']);
    expect((await send(shop, `DELETE ${list}/GIFT-50`)).status).toBe(204);
    expect((await send(shop, `DELETE /carts/${cartIds.celebration}/vouchers/SAVE5`)).status).toBe(204);
    expect(await idsOf()).toEqual(['SUMMER10']);
    expect((await totalsOf(cartIds.celebration)).priceToPay).toBe(47_700 - 4770);
  });
});

describe('a shared cart', () => {
  const office = `/carts/${cartIds.office}`;
  const change = { body: resource('carts', { name: 'Changed' }) };

  it.each([
    ['its owner', 'DE--21', 200, 200],
    ['a colleague who may read', 'DE--22', 200, 403],
    ['a colleague who may write', 'DE--23', 200, 200],
    ['somebody of another company', 'DE--5', 404, 404],
  ])('is open to %s as far as the group says', async (_, as, reading, writing) => {
    expect((await send(shop, `GET ${office}`, { as })).status).toBe(reading);
    expect((await send(shop, `PATCH ${office}`, { as, ...change })).status).toBe(writing);
  });

  it('gives more and then nothing when the sharing changes and ends', async () => {
    const sharing = `/shared-carts/${sharedCartIds.withKarl}`;
    const as = 'DE--22';
    await send(shop, `PATCH ${sharing}`, { body: resource('shared-carts', { idCartPermissionGroup: 2 }) });
    expect((await send(shop, `PATCH ${office}`, { as, ...change })).status).toBe(200);
    expect((await send(shop, `DELETE ${office}`, { as })).json.errors[0].code).toBe('115');
    await send(shop, `DELETE ${sharing}`);
    expect((await send(shop, `GET ${office}`, { as })).json.errors[0].code).toBe('101');
  });

  it('appears in the list of the one it is shared with', async () => {
    const path = `POST /carts/${cartIds.everyday}/shared-carts`;
    const attributes = { idCompanyUser: companyUserIds.nora, idCartPermissionGroup: 1 };
    const reply = await send(shop, path, { body: resource('shared-carts', attributes) });
    expect(reply.json.data.attributes).toEqual(attributes);
    const carts = (await send(shop, 'GET /carts', { as: 'DE--23' })).json.data;
    expect(carts.map((cart: { id: string }) => cart.id)).toContain(cartIds.everyday);
  });
});

describe('a guest’s cart', () => {
  it('is found by the anonymous id alone', async () => {
    const headers = { 'x-anonymous-customer-unique-id': 'guest-1' };
    const body = resource('guest-cart-items', { sku: '218_1233', quantity: 2 });
    const { data } = (await send(shop, 'POST /guest-cart-items', { headers, body })).json;
    expect(data).toMatchObject({ type: 'guest-carts', attributes: { totals: { subtotal: 1098 } } });
    const path = `GET /guest-carts/${data.id}`;
    expect((await send(shop, path, { headers })).status).toBe(200);
    expect(
      (await send(shop, path, { headers: { 'x-anonymous-customer-unique-id': 'guest-2' } })).status,
    ).toBe(404);
    expect((await send(shop, path)).json.errors[0].code).toBe('109');
  });
});

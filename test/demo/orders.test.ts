import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cartIds, orderItemIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

function checkOut(idCart: string, as = 'DE--21') {
  const address = { firstName: 'Sonia', lastName: 'Wagner', address1: 'Hafenweg', city: 'Munich' };
  const attributes = {
    idCart,
    billingAddress: address,
    shippingAddress: address,
    payments: [{ paymentProviderName: 'DummyPayment', paymentMethodName: 'Invoice' }],
    shipment: { idShipmentMethod: 2 },
  };
  return send(shop, 'POST /checkout', { as, body: resource('checkout', attributes) });
}

describe('checkout', () => {
  it('makes an order of a cart, with its prices, and the cart is gone', async () => {
    const reply = await checkOut(cartIds.celebration);
    expect(reply.status).toBe(201);
    const order = await send(shop, `GET /orders/${reply.json.data.attributes.orderReference}`);
    expect(order.json.data.attributes).toMatchObject({
      itemStates: ['paid'],
      totals: { subtotal: 47_700, discountTotal: 5270, expenseTotal: 590, grandTotal: 42_430 + 590 },
    });
    expect(order.json.data.attributes.items).toHaveLength(2);
    expect((await send(shop, `GET /carts/${cartIds.celebration}`)).status).toBe(404);
  });

  it.each([
    ['an empty cart', cartIds.forgotten, '1104'],
    ['somebody else’s cart', cartIds.foreign, '1103'],
    ['no cart', 'unknown', '1103'],
  ])('refuses %s', async (_, cart, code) => {
    const reply = await checkOut(cart);
    expect([reply.status, reply.json.errors[0].code]).toEqual([422, code]);
  });
});

describe('returns', () => {
  it('give back what was paid, once for each item', async () => {
    const items = [orderItemIds.camera, orderItemIds.stapler].map((salesOrderItemUuid) => ({
      salesOrderItemUuid,
      reason: 'Damaged',
    }));
    const body = resource('returns', { store: 'DE', returnItems: items });
    const created = (await send(shop, 'POST /returns', { body })).json.data;
    expect(created.attributes.returnTotals.refundTotal).toBe(9999 + 1290);
    const read = await send(shop, `GET /returns/${created.id}?include=return-items`);
    expect(
      read.json.included.map((item: { attributes: { refund: number } }) => item.attributes.refund),
    ).toEqual([9999, 1290]);
    expect((await send(shop, 'POST /returns', { body })).json.errors[0].code).toBe('3601');
  });

  it('refuse an item that is named twice', async () => {
    const item = { salesOrderItemUuid: orderItemIds.camera, reason: 'Damaged' };
    const body = resource('returns', { store: 'DE', returnItems: [item, item] });
    expect((await send(shop, 'POST /returns', { body })).status).toBe(422);
  });
});

import type {
  Cart,
  ListItem,
  Order,
  OrderItem,
  ProductList,
  Return,
  Review,
  SharedCart,
} from '../entities.ts';
import {
  cartIds,
  companyUserIds,
  orderIds,
  orderItemIds,
  returnIds,
  sharedCartIds,
  shoppingListIds,
  shoppingListItemIds,
  defaultCustomerReference as sonia,
  wishlistIds,
} from './ids.ts';
import { findOffer } from './products.ts';

const created = { createdAt: '2026-01-15 09:30:00.000000', updatedAt: '2026-01-15 09:30:00.000000' };
const euro = { priceMode: 'GROSS_MODE', currency: 'EUR', store: 'DE' } as const;

function cart(id: string, owner: string, name: string, quantities: Record<string, number>): Cart {
  const items = Object.entries(quantities).map(([sku, quantity]) => ({ sku, quantity }));
  return { ...euro, id, owner, name, isDefault: false, items, codes: [] };
}

const everydayItems = { '001_25904006': 1, '209_12554247': 2, '218_1233': 10 };

export const seedCarts: readonly Cart[] = [
  { ...cart(cartIds.everyday, sonia, 'Everyday purchases', everydayItems), isDefault: true },
  cart(cartIds.office, sonia, 'Office', { '134_29759322': 1 }),
  {
    ...cart(cartIds.celebration, sonia, 'Celebration', { '301_4711': 2, '020_21081478': 1 }),
    codes: ['SUMMER10', 'SAVE5', 'GIFT-50'],
  },
  cart(cartIds.forgotten, sonia, 'Forgotten', {}),
  { ...cart(cartIds.foreign, 'DE--22', 'Karl’s cart', { '155_30149933': 1 }), isDefault: true },
];

function sharedOffice(id: string, idCompanyUser: string, idCartPermissionGroup: number): SharedCart {
  return { id, cartId: cartIds.office, idCompanyUser, idCartPermissionGroup };
}

export const seedSharedCarts: readonly SharedCart[] = [
  sharedOffice(sharedCartIds.withKarl, companyUserIds.karl, 1),
  sharedOffice(sharedCartIds.withNora, companyUserIds.nora, 2),
];

function list(id: string, name: string, ...items: ListItem[]): ProductList {
  return { ...created, id, owner: sonia, name, items };
}

function listItem(sku: string, id = sku, quantity = 1): ListItem {
  return { id, sku, quantity };
}

export const seedWishlists: readonly ProductList[] = [
  list(wishlistIds.cameras, 'Cameras', listItem('001_25904006'), listItem('005_30663301')),
  list(wishlistIds.someday, 'Someday', listItem('087_20344652')),
  list(wishlistIds.outdated, 'Outdated'),
];

const { paper, stapler, notebook } = shoppingListItemIds;

export const seedShoppingLists: readonly ProductList[] = [
  list(shoppingListIds.weekly, 'Weekly', listItem('218_1233', paper, 5), listItem('209_12554247', stapler)),
  list(shoppingListIds.desk, 'Desk', listItem('134_26145012', notebook)),
  list(shoppingListIds.outdated, 'Outdated'),
];

function item(uuid: string, sku: string, unitPrice: number, state: OrderItem['state']): OrderItem {
  const name = findOffer(sku)?.concrete.name ?? sku;
  const amounts = { quantity: 1, unitPrice, sumPrice: unitPrice, refundableAmount: unitPrice };
  return { uuid, sku, name, ...amounts, merchantReference: 'MER000006', state };
}

const hafenweg = {
  ...{ firstName: 'Sonia', lastName: 'Wagner' },
  ...{ address1: 'Hafenweg', address2: '12', city: 'Munich' },
};

function order(reference: string, owner: string, items: OrderItem[]): Order {
  const subtotal = items.reduce((sum, each) => sum + each.sumPrice, 0);
  const expenseTotal = 490;
  const grandTotal = subtotal + expenseTotal;
  const taxTotal = Math.round((grandTotal * 19) / 119);
  const amounts = { expenseTotal, discountTotal: 0, taxTotal, subtotal, grandTotal };
  return {
    ...{
      reference,
      owner,
      createdAt: '2026-02-02 11:00:00.000000',
      currency: 'EUR',
      priceMode: 'GROSS_MODE',
    },
    totals: { ...amounts, canceledTotal: 0, remunerationTotal: 0 },
    ...{ items, billingAddress: hafenweg, shippingAddress: hafenweg, discounts: [] },
    ...{ shipmentMethod: 'Standard', paymentMethod: 'Invoice' },
  };
}

export const seedOrders: readonly Order[] = [
  order(orderIds.delivered, sonia, [
    item(orderItemIds.camera, '001_25904006', 9999, 'delivered'),
    item(orderItemIds.stapler, '209_12554247', 1290, 'delivered'),
    item(orderItemIds.returned, '218_1233', 549, 'waiting for return'),
  ]),
  order(orderIds.shipped, sonia, [item(orderItemIds.paper, '218_1233', 549, 'shipped')]),
  order(orderIds.foreign, 'DE--22', [item(orderItemIds.foreign, '155_30149933', 21900, 'delivered')]),
];

const uuid = '7d8f6c1e-0a61-5f5e-8f0d-1b7f1a2b0001';
const returned = { uuid, orderItemUuid: orderItemIds.returned, reason: 'Damaged', refund: 549 };

export const seedReturns: readonly Return[] = [
  { reference: returnIds.seeded, owner: sonia, store: 'DE', items: [returned] },
];

export const seedReviews: readonly Review[] = [
  {
    ...{ id: '21', abstractSku: '001', author: sonia, nickname: 'Sonia', rating: 4, approved: true },
    ...{ summary: 'Good value', description: 'Small, light, and the pictures are fine.' },
  },
  {
    ...{ id: '22', abstractSku: '001', author: 'DE--22', nickname: 'Karl', rating: 5, approved: true },
    ...{ summary: 'Does what it should', description: 'Two years old and still working.' },
  },
];

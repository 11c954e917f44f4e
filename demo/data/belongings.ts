import type { Cart, Order, OrderItem, ProductList, Return, Review, SharedCart } from '../entities.ts';
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

export const seedWishlists: readonly ProductList[] = [
  {
    ...created,
    id: wishlistIds.cameras,
    owner: sonia,
    name: 'Cameras',
    items: ['001_25904006', '005_30663301'].map(wished),
  },
  { ...created, id: wishlistIds.someday, owner: sonia, name: 'Someday', items: ['087_20344652'].map(wished) },
  { ...created, id: wishlistIds.outdated, owner: sonia, name: 'Outdated', items: [] },
];

export const seedShoppingLists: readonly ProductList[] = [
  {
    ...created,
    id: shoppingListIds.weekly,
    owner: sonia,
    name: 'Weekly',
    items: [
      { id: shoppingListItemIds.paper, sku: '218_1233', quantity: 5 },
      { id: shoppingListItemIds.stapler, sku: '209_12554247', quantity: 1 },
    ],
  },
  {
    ...created,
    id: shoppingListIds.desk,
    owner: sonia,
    name: 'Desk',
    items: [{ id: shoppingListItemIds.notebook, sku: '134_26145012', quantity: 1 }],
  },
  { ...created, id: shoppingListIds.outdated, owner: sonia, name: 'Outdated', items: [] },
];

function wished(sku: string) {
  return { id: sku, sku, quantity: 1 };
}

function item(
  uuid: string,
  sku: string,
  name: string,
  unitPrice: number,
  state: OrderItem['state'],
): OrderItem {
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
  return {
    reference,
    owner,
    createdAt: '2026-02-02 11:00:00.000000',
    currency: 'EUR',
    priceMode: 'GROSS_MODE',
    totals: {
      expenseTotal,
      discountTotal: 0,
      taxTotal,
      subtotal,
      grandTotal,
      canceledTotal: 0,
      remunerationTotal: 0,
    },
    items,
    billingAddress: hafenweg,
    shippingAddress: hafenweg,
    shipmentMethod: 'Standard',
    paymentMethod: 'Invoice',
    discounts: [],
  };
}

export const seedOrders: readonly Order[] = [
  order(orderIds.delivered, sonia, [
    item(orderItemIds.camera, '001_25904006', 'Canon IXUS 160 silver', 9999, 'delivered'),
    item(orderItemIds.stapler, '209_12554247', 'Desk stapler', 1290, 'delivered'),
    item(orderItemIds.returned, '218_1233', 'Copy paper A4, 500 sheets', 549, 'waiting for return'),
  ]),
  order(orderIds.shipped, sonia, [
    item(orderItemIds.paper, '218_1233', 'Copy paper A4, 500 sheets', 549, 'shipped'),
  ]),
  order(orderIds.foreign, 'DE--22', [
    item(orderItemIds.foreign, '155_30149933', 'Acer Iconia', 21900, 'delivered'),
  ]),
];

export const seedReturns: readonly Return[] = [
  {
    reference: returnIds.seeded,
    owner: sonia,
    store: 'DE',
    items: [
      {
        uuid: '7d8f6c1e-0a61-5f5e-8f0d-1b7f1a2b0001',
        orderItemUuid: orderItemIds.returned,
        reason: 'Damaged',
        refund: 549,
      },
    ],
  },
];

export const seedReviews: readonly Review[] = [
  {
    id: '21',
    abstractSku: '001',
    author: sonia,
    rating: 4,
    summary: 'Good value',
    description: 'Small, light, and the pictures are fine.',
    nickname: 'Sonia',
    approved: true,
  },
  {
    id: '22',
    abstractSku: '001',
    author: 'DE--22',
    rating: 5,
    summary: 'Does what it should',
    description: 'Two years old and still working.',
    nickname: 'Karl',
    approved: true,
  },
];

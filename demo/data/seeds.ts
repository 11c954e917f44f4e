import { hashPassword } from '../tokens.ts';
import * as ids from './ids.ts';
import { findOffer } from './products.ts';

/*
 * What the demo shop keeps in memory, as rows. What makes a row makes the shop's new ones, too, and names their type.
 * Amounts are integer cents.
 */

const then = '2026-01-15 09:30:00.000000';
const sonia = ids.defaultCustomerReference;
const karl = 'DE--22';

export type PriceMode = 'GROSS_MODE' | 'NET_MODE';

export const noAddress = {
  ...{ salutation: '', firstName: '', lastName: '', address1: '', address2: '', city: '', zipCode: '' },
  ...{ address3: null as string | null, company: null as string | null, phone: null as string | null },
  ...{ iso2Code: '', isDefaultShipping: false, isDefaultBilling: false },
};

export type Address = typeof noAddress & { readonly id: string };

export function makeCustomer(id: string, email: string, passwordHash: string, createdAt: string) {
  return {
    ...{ id, owner: id, email, passwordHash, createdAt, updatedAt: createdAt },
    ...{ salutation: 'Ms', firstName: '', lastName: '' },
    ...{ gender: null as string | null, dateOfBirth: null as string | null },
    addresses: [] as Address[],
  };
}

export type Customer = ReturnType<typeof makeCustomer>;

/** One for all of them, so that seeding costs nothing. */
const seedPasswordHash = hashPassword(ids.seedPassword);

function person(id: string, salutation: string, firstName: string, lastName: string, dateOfBirth: string) {
  const email = `${firstName.toLowerCase()}@shop.example`;
  const gender = salutation === 'Mr' ? 'Male' : 'Female';
  const made = makeCustomer(id, email, seedPasswordHash, then);
  return { ...made, salutation, firstName, lastName, gender, dateOfBirth };
}

function addressOf(id: string, address1: string, address2: string, rest: Partial<Address>): Address {
  const munich = { salutation: 'Ms', firstName: 'Sonia', lastName: 'Wagner', city: 'Munich', iso2Code: 'DE' };
  return { ...noAddress, ...munich, zipCode: '80331', id, address1, address2, ...rest };
}

const addresses = [
  addressOf(ids.addressIds.home, 'Kirchner Str.', '7', { isDefaultShipping: true }),
  addressOf(ids.addressIds.office, 'Hafenweg', '12', { isDefaultBilling: true }),
  addressOf(ids.addressIds.summerHouse, 'Seestr.', '3a', { city: 'Starnberg', zipCode: '82319' }),
];

const customers: Customer[] = [
  { ...person(sonia, 'Ms', 'Sonia', 'Wagner', '1984-02-11'), addresses },
  person(karl, 'Mr', 'Karl', 'Brandt', '1979-07-30'),
  person('DE--23', 'Ms', 'Nora', 'Lind', '1991-11-05'),
  person('DE--5', 'Mr', 'Spencor', 'Hopkin', '1970-01-19'),
  {
    ...person(ids.leavingCustomerReference, 'Dr', 'Lea', 'Ving', '1988-08-08'),
    email: 'leaving@shop.example',
  },
];

/** A piece of a cart or a list. */
export type Item = { readonly id: string; readonly sku: string; quantity: number };

/** `owner` is a customer's reference, or `anonymous:<id>` for a guest; the id of an item is its sku. */
export function makeCart(id: string, owner: string, name: string, quantities: Record<string, number> = {}) {
  return {
    ...{ id, owner, name, priceMode: 'GROSS_MODE' as PriceMode, currency: 'EUR', store: 'DE' },
    isDefault: false,
    items: Object.entries(quantities).map(([sku, quantity]): Item => ({ id: sku, sku, quantity })),
    codes: [] as { readonly id: string }[],
  };
}

export type Cart = ReturnType<typeof makeCart>;

const { everyday, office, celebration, forgotten, foreign } = ids.cartIds;
const stationery = { '001_25904006': 1, '209_12554247': 2, '218_1233': 10 };

const carts: Cart[] = [
  { ...makeCart(everyday, sonia, 'Everyday purchases', stationery), isDefault: true },
  makeCart(office, sonia, 'Office', { '134_29759322': 1 }),
  {
    ...makeCart(celebration, sonia, 'Celebration', { '301_4711': 2, '020_21081478': 1 }),
    codes: ['SUMMER10', 'SAVE5', 'GIFT-50'].map((id) => ({ id })),
  },
  makeCart(forgotten, sonia, 'Forgotten'),
  { ...makeCart(foreign, karl, 'Karl’s cart', { '155_30149933': 1 }), isDefault: true },
];

export type SharedCart = ReturnType<typeof makeSharedCart>;

export function makeSharedCart(id: string, cartId: string, idCompanyUser: string, idCartPermissionGroup = 0) {
  return { id, cartId, idCompanyUser, idCartPermissionGroup };
}

const sharedCarts: SharedCart[] = [
  makeSharedCart(ids.sharedCartIds.withKarl, office, ids.companyUserIds.karl, 1),
  makeSharedCart(ids.sharedCartIds.withNora, office, ids.companyUserIds.nora, 2),
];

/** A wishlist or a shopping list. */
export type ProductList = ReturnType<typeof makeList>;

export function makeList(id: string, owner: string, name: string, items: Item[] = [], createdAt = then) {
  return { id, owner, name, items, createdAt, updatedAt: createdAt };
}

function itemOf(sku: string, id = sku, quantity = 1): Item {
  return { id, sku, quantity };
}

const wishlists: ProductList[] = [
  makeList(ids.wishlistIds.cameras, sonia, 'Cameras', [itemOf('001_25904006'), itemOf('005_30663301')]),
  makeList(ids.wishlistIds.someday, sonia, 'Someday', [itemOf('087_20344652')]),
  makeList(ids.wishlistIds.outdated, sonia, 'Outdated'),
];

const { paper, stapler, notebook } = ids.shoppingListItemIds;
const weekly = [itemOf('218_1233', paper, 5), itemOf('209_12554247', stapler)];

const shoppingLists: ProductList[] = [
  makeList(ids.shoppingListIds.weekly, sonia, 'Weekly', weekly),
  makeList(ids.shoppingListIds.desk, sonia, 'Desk', [itemOf('134_26145012', notebook)]),
  makeList(ids.shoppingListIds.outdated, sonia, 'Outdated'),
];

type ItemState = 'paid' | 'delivered' | 'shipped' | 'waiting for return';

export function makeOrderItem(uuid: string, sku: string, quantity: number, unitPrice: number, paid: number) {
  const name = findOffer(sku)?.name ?? sku;
  const amounts = { quantity, unitPrice, sumPrice: unitPrice * quantity, refundableAmount: paid };
  return { uuid, sku, name, ...amounts, state: 'paid' as ItemState };
}

export type OrderItem = ReturnType<typeof makeOrderItem>;

const noTotals = { expenseTotal: 0, discountTotal: 0, taxTotal: 0, subtotal: 0, grandTotal: 0 };

export function makeOrder(
  id: string,
  { owner, currency, priceMode }: Cart,
  items: OrderItem[],
  createdAt = then,
) {
  const addresses = { billingAddress: {}, shippingAddress: {} };
  return {
    id,
    owner,
    createdAt,
    currencyIsoCode: currency,
    priceMode,
    items,
    totals: noTotals,
    ...addresses,
  };
}

export type Order = ReturnType<typeof makeOrder>;

function orderOf(id: string, owner: string, items: OrderItem[]): Order {
  const subtotal = items.reduce((sum, each) => sum + each.sumPrice, 0);
  const taxTotal = Math.round((subtotal * 19) / 119);
  const totals = { ...noTotals, taxTotal, subtotal, grandTotal: subtotal };
  return { ...makeOrder(id, makeCart('', owner, ''), items), totals };
}

function sold(uuid: string, sku: string, price: number, state: ItemState): OrderItem {
  return { ...makeOrderItem(uuid, sku, 1, price, price), state };
}

const { orderIds, orderItemIds } = ids;

const orders: Order[] = [
  orderOf(orderIds.delivered, sonia, [
    sold(orderItemIds.camera, '001_25904006', 9999, 'delivered'),
    sold(orderItemIds.stapler, '209_12554247', 1290, 'delivered'),
    sold(orderItemIds.returned, '218_1233', 549, 'waiting for return'),
  ]),
  orderOf(orderIds.shipped, sonia, [sold(orderItemIds.paper, '218_1233', 549, 'shipped')]),
  orderOf(orderIds.foreign, karl, [sold(orderItemIds.foreign, '155_30149933', 21900, 'delivered')]),
];

export function makeReturnItem(
  uuid: string,
  { uuid: orderItemUuid, refundableAmount }: OrderItem,
  reason: string,
) {
  return { uuid, orderItemUuid, reason, refund: refundableAmount };
}

export function makeReturn(id: string, owner: string, items: ReturnType<typeof makeReturnItem>[]) {
  return { id, owner, store: 'DE', items };
}

export type Return = ReturnType<typeof makeReturn>;

const damaged = orders[0]?.items.slice(2) ?? [];

const returns: Return[] = [
  makeReturn(
    ids.returnIds.seeded,
    sonia,
    damaged.map((item) => makeReturnItem('7d8f6c1e-0a61-5f5e-8f0d-1b7f1a2b0001', item, 'Damaged')),
  ),
];

/** A review is shown once somebody in the back office has approved it. */
export function makeReview(id: string, abstractSku: string, isApproved: boolean) {
  return { id, abstractSku, isApproved, rating: 0, summary: '', description: '', nickname: '' };
}

export type Review = ReturnType<typeof makeReview>;

const good = { rating: 4, summary: 'Good value', description: 'Small and light.', nickname: 'Sonia' };
const fine = { rating: 5, summary: 'Does what it should', description: 'Still working.', nickname: 'Karl' };

const reviews: Review[] = [
  { ...makeReview('21', '001', true), ...good },
  { ...makeReview('22', '001', true), ...fine },
];

/** All that changes while the shop runs. */
export const seeds = {
  ...{ customers, carts, sharedCarts, wishlists, shoppingLists, orders, returns, reviews },
  /** The shop's own entity tags by lower-cased id; never deleted, as in a real shop. */
  entityTags: new Map<string, string>(),
  /** The next order, customer and review get a number of their own from here. */
  sequence: 2000,
};

import { hashPassword } from '../tokens.ts';
import { findOffer } from './catalogue.ts';
import * as ids from './ids.ts';

/*
 * What the demo shop keeps in memory, as rows. What makes a row makes the shop's new ones, too, and names their type.
 * Amounts are integer cents.
 */

const sonia = ids.defaultCustomerReference;
const karl = 'DE--22';

export type PriceMode = 'GROSS_MODE' | 'NET_MODE';

export const noAddress = {
  ...{ salutation: '', firstName: '', lastName: '', address1: '', address2: '', city: '', zipCode: '' },
  ...{ iso2Code: '', isDefaultShipping: false, isDefaultBilling: false },
};

export type Address = typeof noAddress & { readonly id: string };

export function makeCustomer(id: string, email: string, passwordHash: string) {
  return {
    ...{ id, owner: id, email, passwordHash, salutation: 'Ms', firstName: '', lastName: '' },
    addresses: [] as Address[],
  };
}

export type Customer = ReturnType<typeof makeCustomer>;

/** One for all of them, so that seeding costs nothing. */
const seedPasswordHash = hashPassword(ids.seedPassword);

function person(id: string, salutation: string, firstName: string, lastName: string): Customer {
  const email = `${firstName.toLowerCase()}@shop.example`;
  return { ...makeCustomer(id, email, seedPasswordHash), salutation, firstName, lastName };
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
  { ...person(sonia, 'Ms', 'Sonia', 'Wagner'), addresses },
  person(karl, 'Mr', 'Karl', 'Brandt'),
  person('DE--23', 'Ms', 'Nora', 'Lind'),
  person('DE--5', 'Mr', 'Spencor', 'Hopkin'),
  person(ids.leavingCustomerReference, 'Dr', 'Lea', 'Ving'),
];

/** A piece of a cart or a list; in a cart its id is its sku. */
export type Item = { readonly id: string; readonly sku: string; quantity: number };

function itemOf(sku: string, quantity = 1, id = sku): Item {
  return { id, sku, quantity };
}

/** `owner` is a customer's reference, or `anonymous:<id>` for a guest. */
export function makeCart(id: string, owner: string, name: string, items: Item[] = []) {
  return {
    ...{ id, owner, name, priceMode: 'GROSS_MODE' as PriceMode, currency: 'EUR', store: 'DE' },
    ...{ items, codes: [] as { readonly id: string }[] },
  };
}

export type Cart = ReturnType<typeof makeCart>;

const { everyday, office, celebration, forgotten, foreign } = ids.cartIds;
const stationery = [itemOf('001_25904006'), itemOf('209_12554247', 2), itemOf('218_1233', 10)];
const presents = [itemOf('301_4711', 2), itemOf('020_21081478')];
const codes = ['SUMMER10', 'SAVE5', 'GIFT-50'].map((id) => ({ id }));

const carts: Cart[] = [
  makeCart(everyday, sonia, 'Everyday purchases', stationery),
  makeCart(office, sonia, 'Office', [itemOf('134_29759322')]),
  { ...makeCart(celebration, sonia, 'Celebration', presents), codes },
  makeCart(forgotten, sonia, 'Forgotten'),
  makeCart(foreign, karl, 'Karl’s cart', [itemOf('155_30149933')]),
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

export function makeList(id: string, owner: string, name: string, items: Item[] = []) {
  return { id, owner, name, items };
}

const wishlists: ProductList[] = [
  makeList(ids.wishlistIds.cameras, sonia, 'Cameras', [itemOf('001_25904006'), itemOf('005_30663301')]),
  makeList(ids.wishlistIds.someday, sonia, 'Someday', [itemOf('087_20344652')]),
  makeList(ids.wishlistIds.outdated, sonia, 'Outdated'),
];

const { paper, stapler, notebook } = ids.shoppingListItemIds;
const weekly = [itemOf('218_1233', 5, paper), itemOf('209_12554247', 1, stapler)];

const shoppingLists: ProductList[] = [
  makeList(ids.shoppingListIds.weekly, sonia, 'Weekly', weekly),
  makeList(ids.shoppingListIds.desk, sonia, 'Desk', [itemOf('134_26145012', 1, notebook)]),
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

export function makeOrder(id: string, cart: Cart, items: OrderItem[], totals: typeof noTotals) {
  const { owner, currency: currencyIsoCode, priceMode } = cart;
  return { id, owner, createdAt: shopTime(), currencyIsoCode, priceMode, items, totals };
}

export type Order = ReturnType<typeof makeOrder>;

function orderOf(id: string, owner: string, items: OrderItem[]): Order {
  const subtotal = items.reduce((sum, each) => sum + each.sumPrice, 0);
  const taxTotal = Math.round((subtotal * 19) / 119);
  const totals = { ...noTotals, taxTotal, subtotal, grandTotal: subtotal };
  return makeOrder(id, makeCart('', owner, ''), items, totals);
}

function sold(uuid: string, sku: string, price: number, state: ItemState): OrderItem {
  return { ...makeOrderItem(uuid, sku, 1, price, price), state };
}

const { orderIds, orderItemIds } = ids;
const damaged = sold(orderItemIds.returned, '218_1233', 549, 'waiting for return');

const orders: Order[] = [
  orderOf(orderIds.delivered, sonia, [
    sold(orderItemIds.camera, '001_25904006', 9999, 'delivered'),
    sold(orderItemIds.stapler, '209_12554247', 1290, 'delivered'),
    damaged,
  ]),
  orderOf(orderIds.shipped, sonia, [sold(orderItemIds.paper, '218_1233', 549, 'shipped')]),
  orderOf(orderIds.foreign, karl, [sold(orderItemIds.foreign, '155_30149933', 21900, 'delivered')]),
];

export type ReturnItem = ReturnType<typeof makeReturnItem>;

export function makeReturnItem(
  uuid: string,
  { uuid: orderItemUuid, refundableAmount }: OrderItem,
  reason: string,
) {
  return { uuid, orderItemUuid, reason, refund: refundableAmount };
}

export type Return = ReturnType<typeof makeReturn>;

export function makeReturn(id: string, owner: string, items: ReturnItem[]) {
  return { id, owner, store: 'DE', items };
}

const returnedItem = makeReturnItem('7d8f6c1e-0a61-5f5e-8f0d-1b7f1a2b0001', damaged, 'Damaged');
const returns: Return[] = [makeReturn(ids.returnIds.seeded, sonia, [returnedItem])];

/** A review is shown once somebody in the back office has approved it. */
export function makeReview(id: string, abstractSku: string) {
  return { id, abstractSku, isApproved: false, rating: 0, summary: '', description: '', nickname: '' };
}

export type Review = ReturnType<typeof makeReview>;

const good = { rating: 4, summary: 'Good value', description: 'Small and light.', nickname: 'Sonia' };
const fine = { rating: 5, summary: 'Does what it should', description: 'Still working.', nickname: 'Karl' };

const reviews: Review[] = [
  { ...makeReview('21', '001'), ...good, isApproved: true },
  { ...makeReview('22', '001'), ...fine, isApproved: true },
];

/** All that changes while the shop runs. */
const seeds = {
  ...{ customers, carts, sharedCarts, wishlists, shoppingLists, orders, returns, reviews },
  /** The shop's own entity tags by lower-cased id; never deleted, as in a real shop. */
  entityTags: new Map<string, string>(),
  /** The next order, customer and review get a number of their own from here. */
  sequence: 2000,
};

export type ShopState = typeof seeds;

/** Two shops never share a record: every call copies the seeds. */
export function createState(): ShopState {
  return structuredClone(seeds);
}

/** Back to the seeds, in place: handlers hold on to the object. */
export function resetState(state: ShopState): void {
  Object.assign(state, createState());
}

export function nextNumber(state: ShopState): number {
  state.sequence += 1;
  return state.sequence;
}

/** Date and time in the form in which the shop writes them. */
function shopTime(): string {
  return `${new Date().toISOString().slice(0, 23).replace('T', ' ')}000`;
}

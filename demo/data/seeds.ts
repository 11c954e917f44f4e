import { hashPassword } from '../tokens.ts';
import { findOffer } from './catalogue.ts';
import * as ids from './ids.ts';

/**
 * The records of the demo shop, as rows in memory. The functions that make the seeds also make new rows, and define their
 * types. Amounts are integer cents.
 */

const sonia = ids.defaultCustomerReference;
const karl = 'DE--22';

export type PriceMode = 'GROSS_MODE' | 'NET_MODE';

/** Makes rows of one kind, with defaults from `blank`. */
function rowsLike<T extends object>(blank: T) {
  return (id: string, said: Partial<T> = {}): T & { readonly id: string } => {
    return { id, ...structuredClone(blank), ...said };
  };
}

export const makeAddress = rowsLike({
  ...{ salutation: '', firstName: '', lastName: '', address1: '', address2: '', city: '', zipCode: '' },
  ...{ iso2Code: '', isDefaultShipping: false, isDefaultBilling: false },
});

export const makeCustomer = rowsLike({
  ...{ owner: '', email: '', passwordHash: '', salutation: 'Ms', firstName: '', lastName: '' },
  addresses: [] as Address[],
});

/** `owner` is a customer's reference, or `anonymous:<id>` for a guest. */
export const makeCart = rowsLike({
  ...{ owner: '', name: '', priceMode: 'GROSS_MODE' as PriceMode, currency: 'EUR', store: 'DE' },
  ...{ items: [] as Item[], codes: [] as { readonly id: string }[] },
});

export const makeSharedCart = rowsLike({ cartId: '', idCompanyUser: '', idCartPermissionGroup: 0 });

/** A wishlist or a shopping list. */
export const makeList = rowsLike({ owner: '', name: '', items: [] as Item[] });

/** A review is shown after someone in the back office has approved it. */
export const makeReview = rowsLike({
  ...{ abstractSku: '', isApproved: false, rating: 0, summary: '', description: '', nickname: '' },
});

export type Address = ReturnType<typeof makeAddress>;
export type Customer = ReturnType<typeof makeCustomer>;
export type Cart = ReturnType<typeof makeCart>;
export type SharedCart = ReturnType<typeof makeSharedCart>;
export type ProductList = ReturnType<typeof makeList>;
export type Review = ReturnType<typeof makeReview>;

/** Hashed once for all customers, to seed quickly. */
const seedPasswordHash = hashPassword(ids.seedPassword);

function person(id: string, salutation: string, firstName: string, lastName: string): Customer {
  const email = `${firstName.toLowerCase()}@shop.example`;
  const passwordHash = seedPasswordHash;
  return makeCustomer(id, { owner: id, email, passwordHash, salutation, firstName, lastName });
}

const { home, office: work, summerHouse } = ids.addressIds;
const named = { salutation: 'Ms', firstName: 'Sonia', lastName: 'Wagner', iso2Code: 'DE' };
const munich = { ...named, city: 'Munich', zipCode: '80331' };

const addresses = [
  makeAddress(home, { ...munich, address1: 'Kirchner Str.', address2: '7', isDefaultShipping: true }),
  makeAddress(work, { ...munich, address1: 'Hafenweg', address2: '12', isDefaultBilling: true }),
  makeAddress(summerHouse, {
    ...{ ...named, address1: 'Seestr.', address2: '3a', city: 'Starnberg', zipCode: '82319' },
  }),
];

const customers: Customer[] = [
  { ...person(sonia, 'Ms', 'Sonia', 'Wagner'), addresses },
  person(karl, 'Mr', 'Karl', 'Brandt'),
  person('DE--23', 'Ms', 'Nora', 'Lind'),
  person('DE--5', 'Mr', 'Spencor', 'Hopkin'),
  person(ids.leavingCustomerReference, 'Dr', 'Lea', 'Ving'),
];

/** An item of a cart or a list; in a cart its id is its sku. */
export type Item = { readonly id: string; readonly sku: string; quantity: number };

function itemOf(sku: string, quantity = 1, id = sku): Item {
  return { id, sku, quantity };
}

const { everyday, office, celebration, forgotten, foreign } = ids.cartIds;
const stationery = [itemOf('001_25904006'), itemOf('209_12554247', 2), itemOf('218_1233', 10)];
const presents = [itemOf('301_4711', 2), itemOf('020_21081478')];
const codes = ['SUMMER10', 'SAVE5', 'GIFT-50'].map((id) => ({ id }));

const carts = [
  makeCart(everyday, { owner: sonia, name: 'Everyday purchases', items: stationery }),
  makeCart(office, { owner: sonia, name: 'Office', items: [itemOf('134_29759322')] }),
  makeCart(celebration, { owner: sonia, name: 'Celebration', items: presents, codes }),
  makeCart(forgotten, { owner: sonia, name: 'Forgotten' }),
  makeCart(foreign, { owner: karl, name: 'Karl’s cart', items: [itemOf('155_30149933')] }),
];

const { withKarl, withNora } = ids.sharedCartIds;
const colleagues = ids.companyUserIds;
const sharedCarts = [
  makeSharedCart(withKarl, { cartId: office, idCompanyUser: colleagues.karl, idCartPermissionGroup: 1 }),
  makeSharedCart(withNora, { cartId: office, idCompanyUser: colleagues.nora, idCartPermissionGroup: 2 }),
];

const small = [itemOf('001_25904006'), itemOf('005_30663301')];
const wishlists = [
  makeList(ids.wishlistIds.cameras, { owner: sonia, name: 'Cameras', items: small }),
  makeList(ids.wishlistIds.someday, { owner: sonia, name: 'Someday', items: [itemOf('087_20344652')] }),
  makeList(ids.wishlistIds.outdated, { owner: sonia, name: 'Outdated' }),
];

const { paper, stapler, notebook } = ids.shoppingListItemIds;
const weekly = [itemOf('218_1233', 5, paper), itemOf('209_12554247', 1, stapler)];
const desk = [itemOf('134_26145012', 1, notebook)];
const shoppingLists = [
  makeList(ids.shoppingListIds.weekly, { owner: sonia, name: 'Weekly', items: weekly }),
  makeList(ids.shoppingListIds.desk, { owner: sonia, name: 'Desk', items: desk }),
  makeList(ids.shoppingListIds.outdated, { owner: sonia, name: 'Outdated' }),
];

type ItemState = 'paid' | 'delivered' | 'shipped' | 'waiting for return';

export function makeOrderItem(uuid: string, sku: string, quantity: number, unitPrice: number, paid: number) {
  const name = findOffer(sku)?.name ?? sku;
  const amounts = { quantity, unitPrice, sumPrice: unitPrice * quantity, refundableAmount: paid };
  return { uuid, sku, name, ...amounts, state: 'paid' as ItemState };
}

type OrderItem = ReturnType<typeof makeOrderItem>;

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
  return makeOrder(id, makeCart('', { owner }), items, totals);
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

export function makeReturnItem(uuid: string, item: OrderItem, reason: string) {
  return { uuid, orderItemUuid: item.uuid, reason, refund: item.refundableAmount };
}

const returned = [makeReturnItem('7d8f6c1e-0a61-5f5e-8f0d-1b7f1a2b0001', damaged, 'Damaged')];

export const makeReturn = rowsLike({
  owner: '',
  store: 'DE',
  items: [] as ReturnType<typeof makeReturnItem>[],
});

export type Return = ReturnType<typeof makeReturn>;

const returns = [makeReturn(ids.returnIds.seeded, { owner: sonia, items: returned })];

const seen = { abstractSku: '001', isApproved: true };
const good = { rating: 4, summary: 'Good value', description: 'Small and light.', nickname: 'Sonia' };
const fine = { rating: 5, summary: 'Does what it should', description: 'Still working.', nickname: 'Karl' };
const reviews = [makeReview('21', { ...seen, ...good }), makeReview('22', { ...seen, ...fine })];

/** The records that change while the shop runs. */
const seeds = {
  ...{ customers, carts, sharedCarts, wishlists, shoppingLists, orders, returns, reviews },
  /** The shop's own entity tags by lower-cased id; never deleted, as in a real shop. */
  entityTags: new Map<string, string>(),
  /** Numbers of new orders, customers and reviews count from here. */
  sequence: 2000,
};

export type ShopState = typeof seeds;

/** Returns a copy, so that two shops never share a record. */
export function createState(): ShopState {
  return structuredClone(seeds);
}

/** Restores the seeds in the same object, because handlers have references to it. */
export function resetState(state: ShopState): void {
  Object.assign(state, createState());
}

export function nextNumber(state: ShopState): number {
  state.sequence += 1;
  return state.sequence;
}

/** Date and time in the shop's format. */
function shopTime(): string {
  return `${new Date().toISOString().slice(0, 23).replace('T', ' ')}000`;
}

import { randomUUID } from 'node:crypto';
import {
  seedCarts,
  seedOrders,
  seedReturns,
  seedReviews,
  seedSharedCarts,
  seedShoppingLists,
  seedWishlists,
} from './data/belongings.ts';
import { seedCustomers } from './data/customers.ts';
import { seedPassword } from './data/ids.ts';
import type { Cart, Customer, Order, ProductList, Return, Review, SharedCart } from './entities.ts';
import { hashPassword } from './tokens.ts';

export type ShopState = {
  readonly customers: Map<string, Customer>;
  readonly carts: Map<string, Cart>;
  readonly sharedCarts: Map<string, SharedCart>;
  readonly wishlists: Map<string, ProductList>;
  readonly shoppingLists: Map<string, ProductList>;
  readonly orders: Map<string, Order>;
  readonly returns: Map<string, Return>;
  readonly reviews: Map<string, Review>;
  /** The shop's own entity tags by lower-cased id; never deleted, as in a real shop. */
  readonly entityTags: Map<string, string>;
  /** The next order, customer and review get a number of their own from here. */
  sequence: number;
};

/** One for all of them, so that seeding costs nothing. */
const seedPasswordHash = hashPassword(seedPassword);

/** Two shops never share a record: every call copies the seeds. */
export function createState(): ShopState {
  return {
    customers: new Map(seedCustomers.map((seed) => [seed.reference, createSeededCustomer(seed)])),
    carts: copy(seedCarts, (cart) => cart.id),
    sharedCarts: copy(seedSharedCarts, (shared) => shared.id),
    wishlists: copy(seedWishlists, (wishlist) => wishlist.id),
    shoppingLists: copy(seedShoppingLists, (list) => list.id),
    orders: copy(seedOrders, (order) => order.reference),
    returns: copy(seedReturns, (each) => each.reference),
    reviews: copy(seedReviews, (review) => review.id),
    entityTags: new Map(),
    sequence: 2000,
  };
}

/** Back to the seeds, in place: handlers hold on to the object. */
export function resetState(state: ShopState): void {
  Object.assign(state, createState());
}

export function nextNumber(state: ShopState): number {
  state.sequence += 1;
  return state.sequence;
}

export function newId(): string {
  return randomUUID();
}

/** Date and time in the form in which the shop writes them. */
export function shopTime(now: Date = new Date()): string {
  return `${now.toISOString().slice(0, 23).replace('T', ' ')}000`;
}

function copy<T>(seeds: readonly T[], idOf: (seed: T) => string): Map<string, T> {
  return new Map(seeds.map((seed) => [idOf(seed), structuredClone(seed)]));
}

function createSeededCustomer(seed: (typeof seedCustomers)[number]): Customer {
  return {
    ...structuredClone(seed),
    addresses: structuredClone([...seed.addresses]),
    idCustomer: Number(seed.reference.replace(/\D/g, '')),
    passwordHash: seedPasswordHash,
    createdAt: '2025-06-01 08:00:00.000000',
    updatedAt: '2025-06-01 08:00:00.000000',
    anonymized: false,
  };
}

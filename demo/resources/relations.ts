import { companyUsers } from '../data/companies.ts';
import type { Resource, ResourceCall } from '../http/call.ts';
import { showCartItems, showGiftCards, showSharedCart, showVouchers } from './cart-views.ts';
import { showCustomer } from './customers.ts';
import { findMerchant, showConcrete, showMerchant, showProduct } from './product-views.ts';
import { showConcretesOf } from './products.ts';
import { showReturnItems } from './returns.ts';
import { showListItems } from './shopping-list-items.ts';
import { showItems } from './wishlists.ts';

type FindRelated = (call: ResourceCall, resource: Resource) => readonly Resource[];

/** What `include` may name, by the type of the resource that it is reached from. */
export const relations: Readonly<Record<string, Readonly<Record<string, FindRelated>>>> = {
  carts: {
    items: (call, { id }) => ofRecord(call.state.carts, id, showCartItems),
    vouchers: (call, { id }) => ofRecord(call.state.carts, id, showVouchers),
    'gift-cards': (call, { id }) => ofRecord(call.state.carts, id, showGiftCards),
    'shared-carts': (call, { id }) =>
      [...call.state.sharedCarts.values()].filter((shared) => shared.cartId === id).map(showSharedCart),
  },
  'guest-carts': { 'guest-cart-items': (call, { id }) => ofRecord(call.state.carts, id, showCartItems) },
  items: { 'concrete-products': concreteOfItem, merchants: merchantOfItem },
  'guest-cart-items': { 'concrete-products': concreteOfItem },
  'wishlist-items': { 'concrete-products': concreteOfItem },
  'shopping-list-items': { 'concrete-products': concreteOfItem },
  'concrete-products': {
    'abstract-products': (call, resource) => {
      const sku = attribute(resource, 'productAbstractSku');
      return sku === '' ? [] : [showProduct(call, sku)];
    },
  },
  'abstract-products': {
    'concrete-products': (call, { id }) => showConcretesOf(call, id ?? ''),
    merchants: merchantOfItem,
  },
  wishlists: { 'wishlist-items': (call, { id }) => ofRecord(call.state.wishlists, id, showItems) },
  'shopping-lists': {
    'shopping-list-items': (call, { id }) => ofRecord(call.state.shoppingLists, id, showListItems),
  },
  returns: { 'return-items': (call, { id }) => ofRecord(call.state.returns, id, showReturnItems) },
  'company-users': {
    customers: (call, { id }) => {
      const reference = companyUsers.find((user) => user.id === id)?.customer ?? null;
      return ofRecord(call.state.customers, reference, (customer) => [showCustomer(customer)]);
    },
  },
  'catalog-search': {
    'abstract-products': (call, { attributes }) => {
      const hits = (attributes as { abstractProducts: { abstractSku: string }[] }).abstractProducts;
      return hits.map((hit) => showProduct(call, hit.abstractSku));
    },
  },
};

function ofRecord<T>(
  records: ReadonlyMap<string, T>,
  id: string | null,
  show: (record: T) => readonly Resource[],
): readonly Resource[] {
  const record = records.get(id ?? '');
  return record === undefined ? [] : show(record);
}

function concreteOfItem(call: ResourceCall, resource: Resource): readonly Resource[] {
  return [showConcrete(call, attribute(resource, 'sku'))];
}

function merchantOfItem(call: ResourceCall, resource: Resource): readonly Resource[] {
  const merchant = findMerchant(attribute(resource, 'merchantReference'));
  return merchant === undefined ? [] : [showMerchant(call, merchant)];
}

function attribute({ attributes }: Resource, name: string): string {
  const value = (attributes as Record<string, unknown> | null)?.[name];
  return typeof value === 'string' ? value : '';
}

import { cartPermissionGroups, companyUsers } from '../data/companies.ts';
import { stores } from '../data/pages.ts';
import { currencies, findOffer } from '../data/products.ts';
import type { Cart, PriceMode, SharedCart } from '../entities.ts';
import { collection, pick, reading } from '../http/collection.ts';
import { refuse } from '../http/refusals.ts';
import {
  customerOf,
  isBoolean,
  isInteger,
  isText,
  numberOf,
  optional,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { newId } from '../state.ts';
import { callerOf, changeCart, isOwner, ownCart, readCart, visibleCarts } from './cart-access.ts';
import { showCart, showSharedCart } from './cart-views.ts';
import { showProduct } from './products.ts';

export const cartRoutes: readonly ResourceRoute[] = [
  collection<Cart>({
    type: 'carts',
    records: visibleCarts,
    find: (call, id, method) => {
      const find = { GET: readCart, POST: readCart, PATCH: changeCart, DELETE: ownCart }[method];
      return find(call, id);
    },
    show: showCart,
    create: {
      attributes: { name: isText, priceMode: isText, currency: isText, store: isText },
      run: (call) => {
        customerOf(call);
        const cart = newCart(call, textOf(call.attributes, 'name'));
        applyChange(call, cart);
        makeDefault(call, cart);
        return cart;
      },
    },
    change: {
      attributes: {
        ...{ name: optional(isText), priceMode: optional(isText), currency: optional(isText) },
        ...{ store: optional(isText), isDefault: optional(isBoolean) },
      },
      run: (call, cart) => {
        checkChange(call, cart);
        applyChange(call, cart);
      },
    },
    remove: deleteCart,
  }),
  reading(
    'carts',
    (call) => {
      if (call.parents.get('customers') !== call.user.reference) refuse('ordersForbidden');
      return visibleCarts(call).map((cart) => showCart(call, cart));
    },
    'customers',
  ),
  reading('up-selling-products', listUpSelling, 'carts'),
  collection<SharedCart>({
    type: 'shared-carts',
    parent: 'carts',
    records: (call) => [...call.state.sharedCarts.values()],
    reads: 'never',
    find: ownSharing,
    show: showSharedCart,
    create: { attributes: { idCompanyUser: isText, idCartPermissionGroup: isInteger }, run: shareCart },
    change: {
      attributes: { idCartPermissionGroup: isInteger },
      run: (call, shared) => {
        shared.idCartPermissionGroup = wantedGroup(call);
      },
    },
    remove: (call, shared) => call.state.sharedCarts.delete(shared.id),
  }),
  collection<(typeof cartPermissionGroups)[number]>({
    type: 'cart-permission-groups',
    records: () => cartPermissionGroups,
    missing: 'cartPermissionGroupUnknown',
    show: (_, group) => {
      const attributes = pick(group, 'name', 'isDefault');
      return { type: 'cart-permission-groups', id: String(group.id), attributes };
    },
  }),
];

/** An empty cart of whoever is calling. */
export function newCart(call: ResourceCall, name: string): Cart {
  const terms = { priceMode: 'GROSS_MODE', currency: 'EUR', store: 'DE' } as const;
  const cart = { id: newId(), owner: callerOf(call), name, ...terms, isDefault: true, items: [], codes: [] };
  checkChange(call, cart);
  call.state.carts.set(cart.id, cart);
  return cart;
}

function deleteCart({ state }: ResourceCall, cart: Cart): void {
  state.carts.delete(cart.id);
  for (const shared of state.sharedCarts.values()) {
    if (shared.cartId === cart.id) state.sharedCarts.delete(shared.id);
  }
  const next = [...state.carts.values()].find((each) => each.owner === cart.owner);
  if (cart.isDefault && next !== undefined) next.isDefault = true;
}

function checkChange({ attributes }: ResourceCall, cart: Cart): void {
  const priceMode = textOf(attributes, 'priceMode', cart.priceMode);
  if (!['GROSS_MODE', 'NET_MODE'].includes(priceMode)) refuse('priceModeIncorrect');
  if (!currencies.includes(textOf(attributes, 'currency', cart.currency))) refuse('currencyIncorrect');
  if (!stores.some((store) => store.id === textOf(attributes, 'store', cart.store))) refuse('storeInvalid');
  if (priceMode !== cart.priceMode && cart.items.length > 0) refuse('cartPriceModeFixed');
}

function applyChange(call: ResourceCall, cart: Cart): void {
  const { attributes } = call;
  cart.priceMode = textOf(attributes, 'priceMode', cart.priceMode) as PriceMode;
  for (const name of ['name', 'currency', 'store'] as const)
    cart[name] = textOf(attributes, name, cart[name]);
  if (attributes.isDefault === true) makeDefault(call, cart);
}

function makeDefault(call: ResourceCall, cart: Cart): void {
  for (const each of call.state.carts.values()) {
    if (each.owner === cart.owner) each.isDefault = each === cart;
  }
}

/** What goes with the products of the cart and is not in it yet. */
function listUpSelling(call: ResourceCall): Resource[] {
  const cart = readCart(call, call.parents.get('carts'));
  const inCart = cart.items.flatMap((item) => findOffer(item.sku)?.product ?? []);
  const skus = new Set(inCart.flatMap((product) => product.upSelling));
  for (const { sku } of inCart) skus.delete(sku);
  return [...skus].map((sku) => showProduct(call, sku));
}

function shareCart(call: ResourceCall): SharedCart {
  const { state, attributes, user } = call;
  const cart = readCart(call, call.parents.get('carts'));
  if (!isOwner(call, cart)) refuse('sharingForbidden');
  const idCompanyUser = textOf(attributes, 'idCompanyUser');
  const target = companyUsers.find((each) => each.id === idCompanyUser) ?? refuse('companyUserNotFound');
  const colleagues = companyUsers.filter((each) => each.companyId === target.companyId);
  if (!colleagues.some((each) => each.customer === user.reference)) refuse('sharingOutsideCompany');
  const sharings = [...state.sharedCarts.values()].filter((each) => each.cartId === cart.id);
  if (sharings.some((each) => each.idCompanyUser === idCompanyUser)) refuse('cartAlreadyShared');
  const shared = { id: newId(), cartId: cart.id, idCompanyUser, idCartPermissionGroup: wantedGroup(call) };
  state.sharedCarts.set(shared.id, shared);
  return shared;
}

function ownSharing(call: ResourceCall, id: string): SharedCart {
  const shared = call.state.sharedCarts.get(id);
  const cart = shared && call.state.carts.get(shared.cartId);
  if (shared === undefined || cart === undefined) refuse('sharedCartNotFound');
  return isOwner(call, cart) ? shared : refuse('sharingForbidden');
}

function wantedGroup(call: ResourceCall): number {
  const id = numberOf(call.attributes, 'idCartPermissionGroup');
  return cartPermissionGroups.some((group) => group.id === id) ? id : refuse('cartPermissionGroupNotFound');
}

import { currencies } from '../data/catalogue.ts';
import { stores } from '../data/pages.ts';
import type { Cart, PriceMode } from '../entities.ts';
import { type AttributeRules, isBoolean, isText, optional, textOf } from '../http/attributes.ts';
import {
  answerMany,
  answerOne,
  customerOf,
  noContent,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId } from '../state.ts';
import { callerOf, changeCart, ownCart, readCart, visibleCarts } from './cart-access.ts';
import { showCart } from './cart-views.ts';

const priceModes: readonly string[] = ['GROSS_MODE', 'NET_MODE'];

const creation: AttributeRules = { name: isText, priceMode: isText, currency: isText, store: isText };
const change: AttributeRules = {
  name: optional(isText),
  priceMode: optional(isText),
  currency: optional(isText),
  store: optional(isText),
  isDefault: optional(isBoolean),
};

export const cartRoutes: readonly ResourceRoute[] = [
  {
    type: 'carts',
    methods: {
      GET: { handle: (call) => (call.id ? answerOne(showCart(readCart(call, call.id))) : listCarts(call)) },
      POST: { handle: createCart, attributes: creation },
      PATCH: { handle: updateCart, attributes: change },
      DELETE: { handle: deleteCart },
    },
  },
  {
    type: 'carts',
    parent: 'customers',
    methods: {
      GET: {
        handle: (call) => {
          if (call.parents.get('customers') !== call.user.reference) refuse('ordersForbidden');
          return listCarts(call);
        },
      },
    },
  },
];

function listCarts(call: ResourceCall) {
  return answerMany(visibleCarts(call).map(showCart));
}

function createCart(call: ResourceCall) {
  customerOf(call);
  const cart = newCart(call, textOf(call.attributes, 'name'));
  applyChange(call, cart);
  makeDefault(call, cart);
  return answerOne(showCart(cart), 201);
}

/** An empty cart of whoever is calling. */
export function newCart(call: ResourceCall, name: string): Cart {
  const cart: Cart = {
    id: newId(),
    owner: callerOf(call),
    name,
    priceMode: 'GROSS_MODE',
    currency: 'EUR',
    store: 'DE',
    isDefault: true,
    items: [],
    codes: [],
  };
  checkChange(call, cart);
  call.state.carts.set(cart.id, cart);
  return cart;
}

function updateCart(call: ResourceCall) {
  const cart = changeCart(call, call.id);
  checkChange(call, cart);
  applyChange(call, cart);
  return answerOne(showCart(cart));
}

function deleteCart(call: ResourceCall) {
  const cart = ownCart(call, call.id);
  call.state.carts.delete(cart.id);
  for (const shared of call.state.sharedCarts.values()) {
    if (shared.cartId === cart.id) call.state.sharedCarts.delete(shared.id);
  }
  const next = [...call.state.carts.values()].find((each) => each.owner === cart.owner);
  if (cart.isDefault && next !== undefined) next.isDefault = true;
  return noContent;
}

function checkChange({ attributes }: ResourceCall, cart: Cart): void {
  const priceMode = textOf(attributes, 'priceMode', cart.priceMode);
  if (!priceModes.includes(priceMode)) refuse('priceModeIncorrect');
  if (!currencies.includes(textOf(attributes, 'currency', cart.currency))) refuse('currencyIncorrect');
  if (!stores.some((store) => store.id === textOf(attributes, 'store', cart.store))) refuse('storeInvalid');
  if (priceMode !== cart.priceMode && cart.items.length > 0) refuse('cartPriceModeFixed');
}

function applyChange(call: ResourceCall, cart: Cart): void {
  const { attributes } = call;
  cart.name = textOf(attributes, 'name', cart.name);
  cart.priceMode = textOf(attributes, 'priceMode', cart.priceMode) as PriceMode;
  cart.currency = textOf(attributes, 'currency', cart.currency);
  cart.store = textOf(attributes, 'store', cart.store);
  if (attributes.isDefault === true) makeDefault(call, cart);
}

function makeDefault(call: ResourceCall, cart: Cart): void {
  for (const each of call.state.carts.values()) {
    if (each.owner === cart.owner) each.isDefault = each === cart;
  }
}

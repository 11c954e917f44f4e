import type { Cart } from '../entities.ts';
import { isQuantity, isText, numberOf, textOf } from '../http/attributes.ts';
import { answerMany, answerOne, noContent, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { callerOf, readCart } from './cart-access.ts';
import { addItem, changeQuantity, removeItem } from './cart-items.ts';
import { showCart } from './cart-views.ts';
import { newCart } from './carts.ts';

const item = { sku: isText, quantity: isQuantity };

/** Public on purpose: a guest has one cart, found by `X-Anonymous-Customer-Unique-Id`. */
export const guestCartRoutes: readonly ResourceRoute[] = [
  {
    type: 'guest-carts',
    methods: {
      GET: {
        handle: (call) =>
          call.id ? answerOne(showCart(readCart(call, call.id))) : answerMany(guestCarts(call).map(showCart)),
      },
    },
  },
  { type: 'guest-cart-items', methods: { POST: { attributes: item, handle: addToOnlyCart } } },
  {
    type: 'guest-cart-items',
    parent: 'guest-carts',
    methods: {
      POST: {
        attributes: item,
        handle: (call) => addTo(call, readCart(call, call.parents.get('guest-carts'))),
      },
      PATCH: {
        attributes: { quantity: isQuantity },
        handle: (call) => {
          const cart = readCart(call, call.parents.get('guest-carts'));
          changeQuantity(cart, call.id, numberOf(call.attributes, 'quantity'));
          return answerOne(showCart(cart));
        },
      },
      DELETE: {
        handle: (call) => {
          removeItem(readCart(call, call.parents.get('guest-carts')), call.id);
          return noContent;
        },
      },
    },
  },
];

function addToOnlyCart(call: ResourceCall) {
  return addTo(call, guestCarts(call)[0] ?? newCart(call, 'Shopping cart'));
}

function addTo(call: ResourceCall, cart: Cart) {
  addItem(cart, textOf(call.attributes, 'sku'), numberOf(call.attributes, 'quantity'));
  return answerOne(showCart(cart), 201);
}

function guestCarts(call: ResourceCall): Cart[] {
  return [...call.state.carts.values()].filter((cart) => cart.owner === callerOf(call));
}

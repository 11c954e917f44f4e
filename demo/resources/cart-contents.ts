import { findOffer } from '../data/products.ts';
import { giftCards, vouchers } from '../data/promotions.ts';
import type { Cart, CartItem } from '../entities.ts';
import { type Collection, collection, reading } from '../http/collection.ts';
import { refuse, ShopError } from '../http/refusals.ts';
import {
  isQuantity,
  isText,
  numberOf,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { callerOf, changeCart, readCart } from './cart-access.ts';
import { showCart, showCodes } from './cart-views.ts';
import { newCart } from './carts.ts';

/** A change of what is in a cart answers with the cart, as in a real shop. */
const inCart = {
  reads: 'never',
  parentOf: changeCart,
  show: (call: ResourceCall, _: unknown, cart: Cart) => showCart(call, cart),
} as const;

const addition: Pick<Collection<CartItem, Cart>, 'records' | 'create'> = {
  records: (_, cart) => cart.items,
  create: { attributes: { sku: isText, quantity: isQuantity }, run: addItem },
};

/** What lies in carts of customers and of guests. Guests' are public on purpose: the id in their header finds them. */
export const cartContentRoutes: readonly ResourceRoute[] = [
  collection<Cart>({ type: 'guest-carts', records: guestCarts, find: readCart, show: showCart }),
  /** A guest has one cart, which need not be named and is made when it is needed. */
  collection<CartItem, Cart>({
    type: 'guest-cart-items',
    ...inCart,
    ...addition,
    parentOf: (call) => guestCarts(call)[0] ?? newCart(call, 'Shopping cart'),
  }),
  itemsOf('items', 'carts'),
  itemsOf('guest-cart-items', 'guest-carts'),
  ...['carts', 'guest-carts'].flatMap((parent) => {
    const codes = codesOf('cart-codes', parent, [...vouchers, ...giftCards]);
    /** The contract has a GET that a real shop has not: it lists the codes of the cart. */
    const list = reading('cart-codes', (call) => showCodes(readCart(call, call.parents.get(parent))));
    return [
      codesOf('vouchers', parent, vouchers),
      { ...codes, methods: { ...list.methods, ...codes.methods } },
    ];
  }),
];

function guestCarts(call: ResourceCall): Cart[] {
  return [...call.state.carts.values()].filter((cart) => cart.owner === callerOf(call));
}

function itemsOf(type: string, parent: string): ResourceRoute {
  return collection<CartItem, Cart>({
    type,
    parent,
    ...inCart,
    ...addition,
    find: (_call, sku, _method, cart) => {
      return cart.items.find((each) => each.sku === sku) ?? refuse('cartItemNotFound');
    },
    change: {
      attributes: { quantity: isQuantity },
      run: ({ attributes }, item) => {
        const quantity = numberOf(attributes, 'quantity');
        checkAvailability(item.sku, quantity);
        item.quantity = quantity;
      },
    },
    remove: (_, item, cart) => {
      cart.items = cart.items.filter((each) => each !== item);
    },
  });
}

function addItem({ attributes }: ResourceCall, cart: Cart): CartItem {
  const sku = textOf(attributes, 'sku');
  const held = cart.items.find((each) => each.sku === sku);
  const quantity = numberOf(attributes, 'quantity') + (held?.quantity ?? 0);
  checkAvailability(sku, quantity);
  const item = held ?? { sku, quantity };
  item.quantity = quantity;
  if (held === undefined) cart.items.push(item);
  return item;
}

function checkAvailability(sku: string, quantity: number): void {
  const stock = findOffer(sku)?.concrete.stock;
  const [detail, code] =
    stock === undefined
      ? [`Product "${sku}" not found`, '102']
      : [`Item ${sku} only has availability of ${stock}.`, '113'];
  if (stock === undefined || quantity > stock) throw new ShopError([{ detail, status: 422, code }]);
}

function codesOf(type: string, parent: string, known: readonly { readonly code: string }[]): ResourceRoute {
  return collection<string, Cart>({
    type,
    parent,
    ...inCart,
    records: (_, cart) => cart.codes,
    find: (_call, code, _method, cart) => (cart.codes.includes(code) ? code : refuse('cartCodeNotInCart')),
    create: {
      attributes: { code: isText },
      run: ({ attributes }, cart) => {
        const added = textOf(attributes, 'code');
        const isKnown = known.some(({ code }) => code === added);
        if (!isKnown || cart.codes.includes(added) || cart.items.length === 0) refuse('cartCodeRefused');
        cart.codes.push(added);
        return added;
      },
    },
    remove: (_, code, cart) => {
      cart.codes = cart.codes.filter((each) => each !== code);
    },
  });
}

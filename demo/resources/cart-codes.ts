import { giftCards, vouchers } from '../data/promotions.ts';
import type { Cart } from '../entities.ts';
import { isText, textOf } from '../http/attributes.ts';
import {
  answerMany,
  answerOne,
  noContent,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { changeCart, readCart } from './cart-access.ts';
import { showCart, showGiftCards, showVouchers } from './cart-views.ts';

const code = { code: isText };

/** `vouchers` takes vouchers only, `cart-codes` gift cards too; both under carts of customers and of guests. */
export const cartCodeRoutes: readonly ResourceRoute[] = ['carts', 'guest-carts'].flatMap((parent) => [
  {
    type: 'vouchers',
    parent,
    methods: {
      POST: { attributes: code, handle: (call) => addCode(call, parent, isVoucher) },
      DELETE: { handle: (call) => removeCode(call, parent) },
    },
  },
  {
    type: 'cart-codes',
    parent,
    methods: {
      /** The contract has a GET that a real shop has not: it lists the codes of the cart. */
      GET: { handle: (call) => answerMany(showCodes(readCart(call, call.parents.get(parent)))) },
      POST: {
        attributes: code,
        handle: (call) => addCode(call, parent, (each) => isVoucher(each) || isGiftCard(each)),
      },
      DELETE: { handle: (call) => removeCode(call, parent) },
    },
  },
]);

function addCode(call: ResourceCall, parent: string, isKnown: (code: string) => boolean) {
  const cart = changeCart(call, call.parents.get(parent));
  const added = textOf(call.attributes, 'code');
  if (!isKnown(added) || cart.codes.includes(added) || cart.items.length === 0) refuse('cartCodeRefused');
  cart.codes.push(added);
  return answerOne(showCart(cart), 201);
}

function removeCode(call: ResourceCall, parent: string) {
  const cart = changeCart(call, call.parents.get(parent));
  const at = cart.codes.indexOf(call.id ?? '');
  if (at < 0) refuse('cartCodeNotInCart');
  cart.codes.splice(at, 1);
  return noContent;
}

function showCodes(cart: Cart): Resource[] {
  return [...showVouchers(cart), ...showGiftCards(cart)].map((shown) => ({
    type: 'cart-codes',
    id: shown.id,
    self: `/carts/${cart.id}/cart-codes/${shown.id}`,
    attributes: { ...shown.attributes, codeType: shown.type },
  }));
}

function isVoucher(candidate: string): boolean {
  return vouchers.some((voucher) => voucher.code === candidate);
}

function isGiftCard(candidate: string): boolean {
  return giftCards.some((card) => card.code === candidate);
}

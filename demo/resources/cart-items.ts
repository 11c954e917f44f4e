import { findOffer } from '../data/catalogue.ts';
import type { Cart } from '../entities.ts';
import { isQuantity, isText, numberOf, textOf } from '../http/attributes.ts';
import { answerMany, answerOne, noContent, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse, ShopError } from '../http/shop-error.ts';
import { changeCart, readCart } from './cart-access.ts';
import { showCart } from './cart-views.ts';
import { showProduct } from './product-views.ts';

/** A change of an item answers with its cart, as in a real shop. */
export const cartItemRoutes: readonly ResourceRoute[] = [
  {
    type: 'items',
    parent: 'carts',
    methods: {
      POST: {
        attributes: { sku: isText, quantity: isQuantity },
        handle: (call) => {
          const cart = changeCart(call, call.parents.get('carts'));
          addItem(cart, textOf(call.attributes, 'sku'), numberOf(call.attributes, 'quantity'));
          return answerOne(showCart(cart), 201);
        },
      },
      PATCH: {
        attributes: { quantity: isQuantity },
        handle: (call) => {
          const cart = changeCart(call, call.parents.get('carts'));
          changeQuantity(cart, call.id, numberOf(call.attributes, 'quantity'));
          return answerOne(showCart(cart));
        },
      },
      DELETE: {
        handle: (call) => {
          removeItem(changeCart(call, call.parents.get('carts')), call.id);
          return noContent;
        },
      },
    },
  },
  { type: 'up-selling-products', parent: 'carts', methods: { GET: { handle: listUpSelling } } },
];

export function addItem(cart: Cart, sku: string, quantity: number): void {
  const item = cart.items.find((each) => each.sku === sku);
  checkAvailability(sku, quantity + (item?.quantity ?? 0));
  if (item === undefined) cart.items.push({ sku, quantity });
  else item.quantity += quantity;
}

export function changeQuantity(cart: Cart, sku: string | null, quantity: number): void {
  const item = cart.items.find((each) => each.sku === sku);
  if (item === undefined) refuse('cartItemNotFound');
  checkAvailability(item.sku, quantity);
  item.quantity = quantity;
}

export function removeItem(cart: Cart, sku: string | null): void {
  const at = cart.items.findIndex((each) => each.sku === sku);
  if (at < 0) refuse('cartItemNotFound');
  cart.items.splice(at, 1);
}

function checkAvailability(sku: string, quantity: number): void {
  const stock = findOffer(sku)?.concrete.stock;
  if (stock === undefined) {
    throw new ShopError([{ detail: `Product "${sku}" not found`, status: 422, code: '102' }]);
  }
  if (quantity > stock) {
    throw new ShopError([
      { detail: `Item ${sku} only has availability of ${stock}.`, status: 422, code: '113' },
    ]);
  }
}

/** What goes with the products of the cart and is not in it yet. */
function listUpSelling(call: ResourceCall) {
  const cart = readCart(call, call.parents.get('carts'));
  const inCart = cart.items.flatMap((item) => findOffer(item.sku)?.product ?? []);
  const skus = new Set(inCart.flatMap((product) => product.upSelling));
  for (const { sku } of inCart) skus.delete(sku);
  return answerMany([...skus].map((sku) => showProduct(call, sku)));
}

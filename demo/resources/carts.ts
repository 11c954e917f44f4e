import { currencies, findOffer, stores } from '../data/catalogue.ts';
import { cartPermissionGroups, companyUsers, readOnlyGroup } from '../data/companies.ts';
import { type Cart, type Item, makeCart, makeSharedCart, type SharedCart } from '../data/seeds.ts';
import { type Refusal, refuse, ShopError } from '../http/refusals.ts';
import {
  type Action,
  type Attributes,
  answerOne,
  isInteger,
  isQuantity,
  isText,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  type ShopMethod,
  textOf,
} from '../http/resource.ts';
import { fixed, reading, required, shown, Table } from '../http/table.ts';
import { cartCodes, priceCart, voucherCodes } from './cart-totals.ts';
import { relatedTo, showProducts } from './catalogue.ts';
import { callerOf, checkOrders } from './customers.ts';

const carts: Table<Cart> = new Table({
  type: 'carts',
  methods: ['GET', 'POST', 'PATCH', 'DELETE'],
  rows: ({ state }) => state.carts,
  sees: (call, cart) => accessTo(call, cart) !== 'none',
  missing: 'cartNotFound',
  fields: {
    ...{ name: required(isText), priceMode: required(isText), currency: required(isText) },
    store: required(isText),
  },
  computed: (_, cart) => {
    const { totals, discounts } = priceCart(cart);
    return { totals, discounts };
  },
  related: (call, cart) => ({ items: () => cart.items.map((item) => items.show(call, item, cart)) }),
  make: (call, id) => makeCart(id, callerOf(call).id, ''),
  check: (call, cart, method) => {
    checkAccess(call, cart, method);
    for (const [name, known, refusal] of cartTerms) {
      if (!known.includes(textOf(call.attributes, name, cart[name]))) refuse(refusal);
    }
    const isSwitched = textOf(call.attributes, 'priceMode', cart.priceMode) !== cart.priceMode;
    if (isSwitched && cart.items.length > 0) refuse('cartPriceModeFixed');
  },
});

/** What the terms of a cart may say. */
const cartTerms: readonly (readonly ['priceMode' | 'currency' | 'store', readonly string[], Refusal])[] = [
  ['priceMode', ['GROSS_MODE', 'NET_MODE'], 'priceModeIncorrect'],
  ['currency', currencies, 'currencyIncorrect'],
  ['store', stores.map(({ id }) => id), 'storeInvalid'],
];

/** Public on purpose: the id in their field finds them. */
const guestCarts = new Table<Cart>({
  ...{ type: 'guest-carts', methods: ['GET'], rows: ({ state }) => state.carts, missing: 'cartNotFound' },
  fields: carts.columns.fields,
  computed: (_, cart) => ({ totals: priceCart(cart).totals }),
});

/** A change of what is in a cart answers with the cart, as in a real shop. */
const inCart = {
  parent: 'carts',
  parentOf: changeCart,
  answer: (call: ResourceCall, cart: Cart) => carts.show(call, cart, undefined),
} as const;

const items: Table<Item, Cart> = new Table<Item, Cart>({
  ...{ type: 'items', ...inCart, methods: ['PATCH', 'DELETE'], missing: 'cartItemNotFound' },
  rows: (_, cart) => cart.items,
  fields: { sku: shown, quantity: { PATCH: isQuantity } },
  computed: (_, { sku }, cart) => {
    const priced = priceCart(cart).items.find((each) => each.sku === sku);
    return { calculations: { ...priced, sumDiscountAmountAggregation: priced?.discount } };
  },
  related: relatedTo,
  check: ({ attributes }, { sku, quantity }) => {
    checkAvailability(sku, Number(attributes.quantity ?? quantity));
  },
});

const sharedCarts = new Table<SharedCart>({
  ...{ type: 'shared-carts', parent: 'carts', methods: ['POST', 'PATCH', 'DELETE'] },
  rows: ({ state }) => state.sharedCarts,
  missing: 'sharedCartNotFound',
  fields: { idCompanyUser: fixed(isText), idCartPermissionGroup: { POST: isInteger, PATCH: isInteger } },
  make: (call, id) => {
    const cart = readCart(call, call.parents.get('carts'));
    return makeSharedCart(id, cart.id, textOf(call.attributes, 'idCompanyUser'));
  },
  check: (call, shared, method) => {
    const cart = call.state.carts.find(({ id }) => id === shared.cartId);
    if (cart?.owner !== call.owner) refuse('sharingForbidden');
    if (method === 'POST') checkColleague(call, shared);
    const group = String(call.attributes.idCartPermissionGroup);
    if (method !== 'DELETE' && !cartPermissionGroups.some(({ id }) => id === group))
      refuse('cartPermissionGroupNotFound');
  },
});

const permissionGroups = new Table<(typeof cartPermissionGroups)[number]>({
  ...{ type: 'cart-permission-groups', methods: ['GET'], rows: () => cartPermissionGroups },
  ...{ missing: 'cartPermissionGroupUnknown', fields: { name: shown, isDefault: shown } },
});

export const cartRoutes: readonly ResourceRoute[] = [
  carts.route,
  new Table<Cart>({ ...carts.columns, parent: 'customers', parentOf: checkOrders, methods: ['GET'] }).route,
  reading('up-selling-products', listUpSelling, 'carts'),
  withMethods(items.route, {
    POST: adding(carts, (call) => changeCart(call, call.parents.get('carts'))),
  }),
  codesOf('vouchers', voucherCodes),
  /** The contract has a GET that a real shop has not: it lists the codes of the cart. */
  withMethods(codesOf('cart-codes', cartCodes), reading('cart-codes', listCodes).methods),
  ...[sharedCarts.route, permissionGroups.route, guestCarts.route],
  /** A guest has one cart, which need not be named and is made when it is needed. */
  { type: 'guest-cart-items', methods: { POST: adding(guestCarts, guestCartOf) } },
];

function withMethods(route: ResourceRoute, methods: ResourceRoute['methods']): ResourceRoute {
  return { ...route, methods: { ...route.methods, ...methods } };
}

/** Puts a product into a cart, or more of it, and answers with the cart. */
function adding(table: Table<Cart>, cartOf: (call: ResourceCall) => Cart): Action {
  const handle = (call: ResourceCall) => {
    const cart = cartOf(call);
    const { sku, quantity } = call.attributes as Attributes & Pick<Item, 'sku' | 'quantity'>;
    const held = cart.items.find((each) => each.sku === sku);
    checkAvailability(sku, quantity + (held?.quantity ?? 0));
    if (held === undefined) cart.items.push({ id: sku, sku, quantity });
    else held.quantity += quantity;
    return answerOne(table.show(call, cart, undefined), 201);
  };
  return { attributes: { sku: isText, quantity: isQuantity }, handle };
}

function codesOf(type: string, known: readonly string[]): ResourceRoute {
  return new Table<Cart['codes'][number], Cart>({
    ...{ type, ...inCart, methods: ['POST', 'DELETE'], missing: 'cartCodeNotInCart' },
    rows: (_, cart) => cart.codes,
    fields: { code: { POST: isText, isHidden: true } },
    make: ({ attributes }, _, cart) => {
      const id = textOf(attributes, 'code');
      const isHeld = cart.codes.some((each) => each.id === id);
      if (isHeld || cart.items.length === 0 || !known.includes(id)) refuse('cartCodeRefused');
      return { id };
    },
  }).route;
}

function listCodes(call: ResourceCall): Resource[] {
  const cart = readCart(call, call.parents.get('carts'));
  return cart.codes.map(({ id }) => {
    return { type: 'cart-codes', id, self: `/carts/${cart.id}/cart-codes/${id}`, attributes: { code: id } };
  });
}

/** What goes with the products of the cart and is not in it yet. */
function listUpSelling(call: ResourceCall): Resource[] {
  const cart = readCart(call, call.parents.get('carts'));
  const inCart = cart.items.flatMap((item) => findOffer(item.sku)?.product ?? []);
  const skus = new Set(inCart.flatMap((product) => product.upSelling));
  for (const { sku } of inCart) skus.delete(sku);
  return showProducts(call, skus);
}

function guestCartOf({ state, owner }: ResourceCall): Cart {
  const held = state.carts.find((cart) => cart.owner === owner);
  const cart = held ?? makeCart(crypto.randomUUID(), owner, 'Shopping cart');
  if (held === undefined) state.carts.push(cart);
  return cart;
}

function checkAvailability(sku: string, quantity: number): void {
  const stock = findOffer(sku)?.stock;
  const [detail, code] =
    stock === undefined
      ? [`Product "${sku}" not found`, '102']
      : [`Item ${sku} only has availability of ${stock}.`, '113'];
  if (stock === undefined || quantity > stock) throw new ShopError([{ detail, status: 422, code }]);
}

/** A cart is shared within a company, once with each colleague. */
function checkColleague({ state, user }: ResourceCall, { cartId, ...shared }: SharedCart): void {
  const target = companyUsers.find(({ id }) => id === shared.idCompanyUser) ?? refuse('companyUserNotFound');
  const colleagues = companyUsers.filter((each) => each.companyId === target.companyId);
  if (!colleagues.some((each) => each.customer === user.reference)) refuse('sharingOutsideCompany');
  const sharings = state.sharedCarts.filter((each) => each.cartId === cartId);
  if (sharings.some((each) => each.idCompanyUser === target.id)) refuse('cartAlreadyShared');
}

/** The cart that a customer may see; a foreign one does not exist for anybody else. */
function readCart(call: ResourceCall, id: string | undefined): Cart {
  if (!id) refuse('cartIdMissing');
  const cart = call.state.carts.find((each) => each.id === id);
  return cart && accessTo(call, cart) !== 'none' ? cart : refuse('cartNotFound');
}

function changeCart(call: ResourceCall, id: string | undefined): Cart {
  const cart = readCart(call, id);
  checkAccess(call, cart, 'PATCH');
  return cart;
}

/** A cart shared for reading may not be changed, and only its owner deletes it. */
function checkAccess(call: ResourceCall, cart: Cart, method: ShopMethod): void {
  const access = accessTo(call, cart);
  if (access === 'read' || (access === 'write' && method === 'DELETE')) refuse('cartActionForbidden');
}

function accessTo({ state, user, owner, anonymousId }: ResourceCall, cart: Cart) {
  if (cart.owner === owner) return 'owner';
  const own = companyUsers.filter((each) => each.customer === user.reference).map(({ id }) => id);
  const shared = state.sharedCarts.find(
    (each) => each.cartId === cart.id && own.includes(each.idCompanyUser),
  );
  if (shared === undefined || anonymousId !== '') return 'none';
  return shared.idCartPermissionGroup === readOnlyGroup ? 'read' : 'write';
}

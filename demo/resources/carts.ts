import { currencies, findOffer, stores } from '../data/catalogue.ts';
import { cartPermissionGroups, companyUsers, readOnlyGroup } from '../data/companies.ts';
import { type Cart, type Item, makeCart, makeSharedCart, type SharedCart } from '../data/seeds.ts';
import { type Refusal, refuse, ShopError } from '../http/refusals.ts';
import type { Resource, ResourceCall, ResourceRoute, ShopMethod } from '../http/resource.ts';
import * as rule from '../http/rules.ts';
import { each, fixed, reading, required, shown, Table } from '../http/table.ts';
import { cartCodes, priceCart, voucherCodes } from './cart-totals.ts';
import { relatedTo, showProducts } from './catalogue.ts';
import { callerOf, checkOrders } from './customers.ts';

const carts: Table<Cart> = new Table({
  type: 'carts',
  methods: ['GET', 'POST', 'PATCH', 'DELETE'],
  rows: ({ state }) => state.carts,
  sees: (call, cart) => accessTo(call, cart) !== 'none',
  missing: 'cartNotFound',
  unnamed: 'cartIdMissing',
  fields: each(required(rule.text), 'name', 'priceMode', 'currency', 'store'),
  computed: (_, cart) => {
    const { totals, discounts } = priceCart(cart);
    return { totals, discounts };
  },
  related: (call, cart) => ({ items: () => cart.items.map((item) => items.show(call, item, cart)) }),
  make: (call, id) => makeCart(id, { owner: callerOf(call).id }),
  check: (call, cart) => {
    const access = accessTo(call, cart);
    // Only the owner may delete it.
    if (access === 'read' || (access === 'write' && call.method === 'DELETE')) refuse('cartActionForbidden');
    for (const [name, known, refusal] of cartTerms) {
      if (!known.includes(rule.readText(call.attributes, name, cart[name]))) refuse(refusal);
    }
    const isSwitched = rule.readText(call.attributes, 'priceMode', cart.priceMode) !== cart.priceMode;
    if (isSwitched && cart.items.length > 0) refuse('cartPriceModeFixed');
  },
});

/** Allowed values of a cart's terms. */
const cartTerms: readonly (readonly ['priceMode' | 'currency' | 'store', readonly string[], Refusal])[] = [
  ['priceMode', ['GROSS_MODE', 'NET_MODE'], 'priceModeIncorrect'],
  ['currency', currencies, 'currencyIncorrect'],
  ['store', stores.map(({ id }) => id), 'storeInvalid'],
];

/** Public on purpose: the id in the guest's header field finds them. */
const guestCarts = new Table<Cart>({
  type: 'guest-carts',
  methods: ['GET'],
  rows: ({ state }) => state.carts,
  missing: 'cartNotFound',
  fields: carts.columns.fields,
  computed: (_, cart) => ({ totals: priceCart(cart).totals }),
});

/** The answer to a change of an item is the cart, as in a real shop. */
const inCart = {
  parent: 'carts',
  parentOf: findCart,
  answer: (call: ResourceCall, cart: Cart) => carts.show(call, cart),
} as const;

const items: Table<Item, Cart> = new Table<Item, Cart>({
  ...inCart,
  type: 'items',
  methods: ['POST', 'PATCH', 'DELETE'],
  rows: (_, cart) => cart.items,
  missing: 'cartItemNotFound',
  fields: {
    sku: fixed(rule.text),
    quantity: { POST: rule.quantity, PATCH: rule.quantity, isAdded: true },
  },
  computed: (_, { sku }, cart) => {
    const priced = priceCart(cart).items.find((each) => each.sku === sku);
    return { calculations: { ...priced, sumDiscountAmountAggregation: priced?.discount } };
  },
  related: relatedTo,
  make: ({ attributes }, _, cart) => {
    const sku = rule.readText(attributes, 'sku');
    return cart.items.find((item) => item.sku === sku) ?? { id: sku, sku, quantity: 0 };
  },
  check: ({ attributes, method }, { sku, quantity }) => {
    const inCart = method === 'POST' ? quantity : 0;
    checkAvailability(sku, inCart + Number(attributes.quantity ?? quantity));
  },
});

/** A guest has one cart: it needs no name and is made at its first use. */
const guestCartItems = new Table<Item, Cart>({
  ...items.columns,
  type: 'guest-cart-items',
  parent: undefined,
  parentOf: guestCartOf,
  methods: ['POST'],
  answer: (call, cart) => guestCarts.show(call, cart),
});

const sharedCarts = new Table<SharedCart>({
  type: 'shared-carts',
  parent: 'carts',
  methods: ['POST', 'PATCH', 'DELETE'],
  rows: ({ state }) => state.sharedCarts,
  missing: 'sharedCartNotFound',
  fields: {
    idCompanyUser: fixed(rule.text),
    idCartPermissionGroup: { POST: rule.integer, PATCH: rule.integer },
  },
  make: (call, id) => {
    const cart = carts.find(call, call.parents.get('carts'));
    return makeSharedCart(id, { cartId: cart.id, idCompanyUser: String(call.attributes.idCompanyUser) });
  },
  check: (call, shared) => {
    const cart = call.state.carts.find(({ id }) => id === shared.cartId);
    if (cart?.owner !== call.owner) refuse('sharingForbidden');
    if (call.method === 'POST') checkColleague(call, shared);
    const group = String(call.attributes.idCartPermissionGroup);
    if (call.method !== 'DELETE' && !cartPermissionGroups.some(({ id }) => id === group))
      refuse('cartPermissionGroupNotFound');
  },
});

const permissionGroups = new Table<(typeof cartPermissionGroups)[number]>({
  type: 'cart-permission-groups',
  methods: ['GET'],
  rows: () => cartPermissionGroups,
  missing: 'cartPermissionGroupUnknown',
  fields: each(shown, 'name', 'isDefault'),
});

export const cartRoutes: readonly ResourceRoute[] = [
  carts.route,
  new Table<Cart>({ ...carts.columns, parent: 'customers', parentOf: checkOrders, methods: ['GET'] }).route,
  reading('up-selling-products', listUpSelling, 'carts'),
  codesOf('vouchers', voucherCodes, ['POST', 'DELETE']),
  /** The contract has a GET, which a real shop lacks: it lists the codes of the cart. */
  codesOf('cart-codes', cartCodes, ['GET', 'POST', 'DELETE']),
  ...[items.route, guestCartItems.route, sharedCarts.route, permissionGroups.route, guestCarts.route],
];

function codesOf(type: string, known: readonly string[], methods: readonly ShopMethod[]): ResourceRoute {
  return new Table<Cart['codes'][number], Cart>({
    ...inCart,
    ...{ type, methods, rows: (_, cart) => cart.codes, missing: 'cartCodeNotInCart' },
    fields: { code: { POST: rule.text, isHidden: true } },
    computed: (_, { id }) => ({ code: id }),
    make: ({ attributes }, _, cart) => {
      const id = rule.readText(attributes, 'code');
      const isUsed = cart.codes.some((each) => each.id === id);
      if (isUsed || cart.items.length === 0 || !known.includes(id)) refuse('cartCodeRefused');
      return { id };
    },
  }).route;
}

/** Products that go with those in the cart and are not in it yet. */
function listUpSelling(call: ResourceCall): Resource[] {
  const { items } = findCart(call, call.parents.get('carts'));
  const inCart = items.flatMap((item) => findOffer(item.sku)?.product ?? []);
  const skus = new Set(inCart.flatMap((product) => product.upSelling));
  for (const { sku } of inCart) skus.delete(sku);
  return showProducts(call, skus);
}

function guestCartOf({ state, owner }: ResourceCall): Cart {
  const known = state.carts.find((cart) => cart.owner === owner);
  const cart = known ?? makeCart(crypto.randomUUID(), { owner, name: 'Shopping cart' });
  if (known === undefined) state.carts.push(cart);
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

/** A cart is shared within a company, at most once with each colleague. */
function checkColleague({ state, user }: ResourceCall, { cartId, ...shared }: SharedCart): void {
  const target = companyUsers.find(({ id }) => id === shared.idCompanyUser) ?? refuse('companyUserNotFound');
  const colleagues = companyUsers.filter((each) => each.companyId === target.companyId);
  if (!colleagues.some((each) => each.customer === user.reference)) refuse('sharingOutsideCompany');
  const sharings = state.sharedCarts.filter((each) => each.cartId === cartId);
  if (sharings.some((each) => each.idCompanyUser === target.id)) refuse('cartAlreadyShared');
}

/** The cart that a path names. A cart shared for reading cannot be changed. */
function findCart(call: ResourceCall, id: string | undefined): Cart {
  const cart = carts.find(call, id);
  if (call.method !== 'GET' && accessTo(call, cart) === 'read') refuse('cartActionForbidden');
  return cart;
}

/** What the caller may do with a cart; to others a cart does not exist. */
function accessTo({ state, user, owner, anonymousId }: ResourceCall, cart: Cart) {
  if (cart.owner === owner) return 'owner';
  const own = companyUsers.filter((each) => each.customer === user.reference).map(({ id }) => id);
  const shared = state.sharedCarts.find(
    (each) => each.cartId === cart.id && own.includes(each.idCompanyUser),
  );
  if (shared === undefined || anonymousId !== '') return 'none';
  return shared.idCartPermissionGroup === readOnlyGroup ? 'read' : 'write';
}

import { findOffer } from '../data/products.ts';
import type { ListItem, ProductList } from '../entities.ts';
import { collection, pick } from '../http/collection.ts';
import { type Refusal, refuse } from '../http/refusals.ts';
import {
  customerOf,
  isQuantity,
  isText,
  numberOf,
  ownRecords,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { newId, type ShopState, shopTime } from '../state.ts';
import { showConcrete } from './products.ts';

/** Wishlists hold a product once and are asked for by its sku; shopping lists hold it as often as it was added. */
type ListKind = {
  readonly type: string;
  readonly itemType: string;
  readonly records: (state: ShopState) => Map<string, ProductList>;
  readonly refusals: Readonly<Record<'unnamed' | 'missing' | 'nameTaken' | 'noProduct' | 'noItem', Refusal>>;
  readonly isSet: boolean;
};

const wishlists: ListKind = {
  type: 'wishlists',
  itemType: 'wishlist-items',
  records: (state) => state.wishlists,
  refusals: {
    unnamed: 'wishlistNotFound',
    missing: 'wishlistNotFound',
    nameTaken: 'wishlistNameTaken',
    noProduct: 'wishlistItemRefused',
    noItem: 'wishlistItemNotFound',
  },
  isSet: true,
};

const shoppingLists: ListKind = {
  type: 'shopping-lists',
  itemType: 'shopping-list-items',
  records: (state) => state.shoppingLists,
  refusals: {
    unnamed: 'shoppingListIdMissing',
    missing: 'shoppingListNotFound',
    nameTaken: 'shoppingListNameTaken',
    noProduct: 'shoppingListProductNotFound',
    noItem: 'shoppingListItemNotFound',
  },
  isSet: false,
};

export const listRoutes: readonly ResourceRoute[] = [wishlists, shoppingLists].flatMap((kind) => [
  listsOf(kind),
  itemsOf(kind),
]);

function listsOf(kind: ListKind): ResourceRoute {
  const { type, records, refusals } = kind;
  const freeName = (call: ResourceCall, except?: ProductList): string => {
    const name = textOf(call.attributes, 'name');
    const others = ownRecords(call, records(call.state)).filter((each) => each !== except);
    return others.some((each) => each.name === name) ? refuse(refusals.nameTaken) : name;
  };
  return collection<ProductList>({
    type,
    records: (call) => ownRecords(call, records(call.state)),
    missing: refusals.missing,
    show: (call, list) => showList(call, list, kind),
    create: {
      attributes: { name: isText },
      run: (call) => {
        const owner = customerOf(call).reference;
        const now = shopTime();
        const name = freeName(call);
        const list: ProductList = { id: newId(), owner, name, items: [], createdAt: now, updatedAt: now };
        records(call.state).set(list.id, list);
        return list;
      },
    },
    change: {
      attributes: { name: isText },
      run: (call, list) => {
        list.name = freeName(call, list);
        list.updatedAt = shopTime();
      },
    },
    remove: (call, list) => records(call.state).delete(list.id),
  });
}

/**
 * PATCH and DELETE of a shopping list's items take the id in the path, as a real shop does, or, in the contract's own
 * shape without it, from the body: `{"data":{"type":"shopping-list-items","id":"…"}}`, for DELETE also a list of such.
 */
function itemsOf(kind: ListKind): ResourceRoute {
  const { refusals, isSet } = kind;
  const quantity = isSet ? {} : { quantity: isQuantity };
  const change = {
    attributes: { quantity: isQuantity },
    run: (call: ResourceCall, item: ListItem, list: ProductList) => {
      item.quantity = numberOf(call.attributes, 'quantity');
      list.updatedAt = shopTime();
    },
  };
  return collection<ListItem, ProductList>({
    type: kind.itemType,
    parent: kind.type,
    parentOf: (call, id) => {
      const list = ownRecords(call, kind.records(call.state)).find((each) => each.id === id);
      return list ?? refuse(id ? refusals.missing : refusals.unnamed);
    },
    records: (_, list) => list.items,
    reads: 'never',
    missing: refusals.noItem,
    show: (call, item, list) => showItem(call, item, list, kind),
    create: {
      attributes: { sku: isText, ...quantity },
      run: (call, list) => {
        const sku = textOf(call.attributes, 'sku');
        if (findOffer(sku) === undefined) refuse(refusals.noProduct);
        list.updatedAt = shopTime();
        const held = isSet ? list.items.find((each) => each.sku === sku) : undefined;
        if (held !== undefined) return held;
        const item = isSet
          ? { id: sku, sku, quantity: 1 }
          : { id: newId(), sku, quantity: numberOf(call.attributes, 'quantity') };
        list.items.push(item);
        return item;
      },
    },
    ...(isSet ? {} : { change, idInBody: true }),
    remove: (_, item, list) => {
      list.items = list.items.filter((each) => each !== item);
      list.updatedAt = shopTime();
    },
  });
}

function showList(call: ResourceCall, list: ProductList, kind: ListKind): Resource {
  const customer = call.state.customers.get(list.owner);
  const owner = customer === undefined ? '' : `${customer.firstName} ${customer.lastName}`;
  const numberOfItems = list.items.reduce((total, item) => total + item.quantity, 0);
  const named = kind.isSet ? { name: list.name } : { owner, name: list.name };
  return {
    type: kind.type,
    id: list.id,
    attributes: { ...named, numberOfItems, ...pick(list, 'createdAt', 'updatedAt') },
    related: { [kind.itemType]: () => list.items.map((item) => showItem(call, item, list, kind)) },
  };
}

function showItem(call: ResourceCall, item: ListItem, list: ProductList, kind: ListKind): Resource {
  const { id, sku, quantity } = item;
  const offer = findOffer(sku);
  const stock = offer?.concrete.stock ?? 0;
  const merchantReference = offer?.product.merchantReference ?? null;
  const wished = { id: sku, sku, availability: { isAvailable: stock > 0, quantity: stock } };
  return {
    type: kind.itemType,
    id,
    self: `/${kind.type}/${list.id}/${kind.itemType}/${id}`,
    attributes: {
      productOfferReference: null,
      merchantReference,
      ...(kind.isSet ? wished : { quantity, sku }),
    },
    related: { 'concrete-products': () => [showConcrete(call, sku)] },
  };
}

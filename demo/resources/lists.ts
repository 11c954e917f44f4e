import { findOffer } from '../data/catalogue.ts';
import { type Item, makeList, type ProductList } from '../data/seeds.ts';
import { type Refusal, refuse } from '../http/refusals.ts';
import { isQuantity, isText, type ResourceCall, type ResourceRoute, textOf } from '../http/resource.ts';
import { fixed, required, Table } from '../http/table.ts';
import { relatedTo } from './catalogue.ts';
import { callerOf } from './customers.ts';

/** Wishlists hold a product once and are asked for by its sku; shopping lists hold it as often as it was added. */
type ListKind = {
  readonly type: string;
  readonly itemType: string;
  readonly kept: 'wishlists' | 'shoppingLists';
  readonly isSet: boolean;
  readonly refusals: Readonly<Record<'unnamed' | 'missing' | 'nameTaken' | 'noProduct' | 'noItem', Refusal>>;
};

const kinds: readonly ListKind[] = [
  {
    ...{ type: 'wishlists', itemType: 'wishlist-items', kept: 'wishlists', isSet: true },
    refusals: {
      ...{ unnamed: 'wishlistNotFound', missing: 'wishlistNotFound', nameTaken: 'wishlistNameTaken' },
      ...{ noProduct: 'wishlistItemRefused', noItem: 'wishlistItemNotFound' },
    },
  },
  {
    ...{ type: 'shopping-lists', itemType: 'shopping-list-items', kept: 'shoppingLists', isSet: false },
    refusals: {
      ...{ unnamed: 'shoppingListIdMissing', missing: 'shoppingListNotFound' },
      ...{ nameTaken: 'shoppingListNameTaken', noProduct: 'shoppingListProductNotFound' },
      noItem: 'shoppingListItemNotFound',
    },
  },
];

export const listRoutes: readonly ResourceRoute[] = kinds.flatMap((kind) => {
  const items = itemsOf(kind, (call, id) => lists.find(call, undefined, id));
  const lists = listsOf(kind, items);
  return [lists.route, items.route];
});

function listsOf({ type, itemType, kept, refusals }: ListKind, items: Table<Item, ProductList>) {
  return new Table<ProductList>({
    type,
    methods: ['GET', 'POST', 'PATCH', 'DELETE'],
    rows: ({ state }) => state[kept],
    missing: refusals.missing,
    fields: { name: required(isText) },
    computed: (_, list) => ({ numberOfItems: list.items.reduce((total, item) => total + item.quantity, 0) }),
    related: (call, list) => ({ [itemType]: () => list.items.map((item) => items.show(call, item, list)) }),
    make: (call, id) => makeList(id, callerOf(call).id, ''),
    check: ({ state, attributes }, list) => {
      const others = state[kept].filter((each) => each.owner === list.owner && each !== list);
      if (others.some(({ name }) => name === attributes.name)) refuse(refusals.nameTaken);
    },
  });
}

/**
 * PATCH and DELETE of a shopping list's items take the id in the path, as a real shop does, or, in the contract's own
 * shape without it, from the body: `{"data":{"type":"shopping-list-items","id":"…"}}`, for DELETE also a list of such.
 */
function itemsOf(
  { type: parent, itemType: type, refusals, isSet }: ListKind,
  findList: (call: ResourceCall, id: string) => ProductList,
): Table<Item, ProductList> {
  return new Table<Item, ProductList>({
    ...{ type, parent, parentOf: (call, id) => findList(call, id || refuse(refusals.unnamed)) },
    methods: isSet ? ['POST', 'DELETE'] : ['POST', 'PATCH', 'DELETE'],
    rows: (_, list) => list.items,
    missing: refusals.noItem,
    fields: { sku: fixed(isText), ...(!isSet && { quantity: { POST: isQuantity, PATCH: isQuantity } }) },
    related: relatedTo,
    make: ({ attributes }, id, list) => {
      const sku = textOf(attributes, 'sku');
      if (findOffer(sku) === undefined) refuse(refusals.noProduct);
      const held = isSet ? list.items.find((each) => each.sku === sku) : undefined;
      return held ?? { id: isSet ? sku : id, sku, quantity: 1 };
    },
    ...(!isSet && { idInBody: true }),
  });
}

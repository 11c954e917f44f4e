import { findOffer } from '../data/catalogue.ts';
import { type Item, makeList, type ProductList } from '../data/seeds.ts';
import { refuse } from '../http/refusals.ts';
import type { ResourceCall, ResourceRoute } from '../http/resource.ts';
import * as rule from '../http/rules.ts';
import { fixed, required, Table } from '../http/table.ts';
import { relatedTo } from './catalogue.ts';
import { callerOf } from './customers.ts';

/** Names of the two kinds; refusals contain the name of the kind. */
type ListKind = {
  readonly kind: 'wishlist' | 'shoppingList';
  readonly type: string;
  readonly itemType: string;
  /** A wishlist has a product once, and its sku is the item's id. A shopping list may have a product several times. */
  readonly isSet?: true;
};

const kinds: readonly ListKind[] = [
  { kind: 'wishlist', type: 'wishlists', itemType: 'wishlist-items', isSet: true },
  { kind: 'shoppingList', type: 'shopping-lists', itemType: 'shopping-list-items' },
];

export const listRoutes: readonly ResourceRoute[] = kinds.flatMap((kind) => {
  const items = itemsOf(kind, (call, id) => lists.find(call, id));
  const lists = listsOf(kind, items);
  return [lists.route, items.route];
});

function listsOf({ kind, type, itemType, isSet }: ListKind, items: Table<Item, ProductList>) {
  return new Table<ProductList>({
    type,
    methods: ['GET', 'POST', 'PATCH', 'DELETE'],
    rows: ({ state }) => state[`${kind}s`],
    missing: `${kind}NotFound`,
    unnamed: isSet ? 'wishlistNotFound' : 'shoppingListIdMissing',
    fields: { name: required(rule.text) },
    computed: (_, list) => ({ numberOfItems: list.items.reduce((total, item) => total + item.quantity, 0) }),
    related: (call, list) => ({ [itemType]: () => list.items.map((item) => items.show(call, item, list)) }),
    make: (call, id) => makeList(id, { owner: callerOf(call).id }),
    check: ({ state, attributes }, list) => {
      const others = state[`${kind}s`].filter((each) => each.owner === list.owner && each !== list);
      if (others.some(({ name }) => name === attributes.name)) refuse(`${kind}NameTaken`);
    },
  });
}

/**
 * PATCH and DELETE of a shopping list's items take the id from the path, as a real shop does. In the contract the path has
 * no id, and the body names it: `{"data":{"type":"shopping-list-items","id":"…"}}`, for DELETE also a list.
 */
function itemsOf(
  { kind, type: parent, itemType: type, isSet }: ListKind,
  parentOf: (call: ResourceCall, id?: string) => ProductList,
): Table<Item, ProductList> {
  return new Table<Item, ProductList>({
    ...{ type, parent, parentOf },
    methods: isSet ? ['POST', 'DELETE'] : ['POST', 'PATCH', 'DELETE'],
    rows: (_, list) => list.items,
    missing: `${kind}ItemNotFound`,
    fields: {
      sku: fixed(rule.text),
      ...(!isSet && { quantity: { POST: rule.quantity, PATCH: rule.quantity } }),
    },
    related: relatedTo,
    make: ({ attributes }, id, list) => {
      const sku = rule.readText(attributes, 'sku');
      if (findOffer(sku) === undefined) refuse(`${kind}ItemRefused`);
      const known = isSet ? list.items.find((each) => each.sku === sku) : undefined;
      return known ?? { id: isSet ? sku : id, sku, quantity: 1 };
    },
    ...(!isSet && { idInBody: true }),
  });
}

import { findOffer } from '../data/catalogue.ts';
import type { ShoppingList, ShoppingListItem } from '../entities.ts';
import { isQuantity, isText, numberOf, textOf } from '../http/attributes.ts';
import { answerOne, noContent, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId, shopTime } from '../state.ts';
import { ownShoppingList } from './shopping-lists.ts';

/**
 * PATCH and DELETE take the item's id in the path, as a real shop does, or, in the contract's own shape without it,
 * from the body: `{"data":{"type":"shopping-list-items","id":"…"}}`, for DELETE also a list of such objects.
 */
export const shoppingListItemRoutes: readonly ResourceRoute[] = [
  {
    type: 'shopping-list-items',
    parent: 'shopping-lists',
    methods: {
      POST: { attributes: { sku: isText, quantity: isQuantity }, handle: addItem },
      PATCH: { attributes: { quantity: isQuantity }, idInBody: true, handle: changeItem },
      DELETE: { idInBody: true, handle: removeItems },
    },
  },
];

function addItem(call: ResourceCall) {
  const list = listOf(call);
  const sku = textOf(call.attributes, 'sku');
  if (findOffer(sku) === undefined) refuse('shoppingListProductNotFound');
  const item: ShoppingListItem = { id: newId(), sku, quantity: numberOf(call.attributes, 'quantity') };
  list.items.push(item);
  list.updatedAt = shopTime();
  return answerOne(showItem(list, item), 201);
}

function changeItem(call: ResourceCall) {
  const list = listOf(call);
  const [id = ''] = namedIds(call);
  const item = findItem(list, id);
  item.quantity = numberOf(call.attributes, 'quantity');
  list.updatedAt = shopTime();
  return answerOne(showItem(list, item));
}

function removeItems(call: ResourceCall) {
  const list = listOf(call);
  const removed = namedIds(call).map((id) => findItem(list, id));
  list.items = list.items.filter((item) => !removed.includes(item));
  list.updatedAt = shopTime();
  return noContent;
}

function listOf(call: ResourceCall): ShoppingList {
  return ownShoppingList(call, call.parents.get('shopping-lists'));
}

function namedIds(call: ResourceCall): readonly string[] {
  const ids = call.id ? [call.id] : call.bodyIds;
  if (ids.length === 0) refuse('idMissing');
  return ids;
}

function findItem(list: ShoppingList, id: string): ShoppingListItem {
  const item = list.items.find((each) => each.id === id);
  if (item === undefined) refuse('shoppingListItemNotFound');
  return item;
}

export function showListItems(list: ShoppingList): Resource[] {
  return list.items.map((item) => showItem(list, item));
}

function showItem(list: ShoppingList, { id, sku, quantity }: ShoppingListItem): Resource {
  const merchantReference = findOffer(sku)?.product.merchantReference ?? null;
  return {
    type: 'shopping-list-items',
    id,
    self: `/shopping-lists/${list.id}/shopping-list-items/${id}`,
    attributes: { productOfferReference: null, merchantReference, quantity, sku },
  };
}

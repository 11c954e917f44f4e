import type { ShoppingList } from '../entities.ts';
import { isText, textOf } from '../http/attributes.ts';
import {
  answerMany,
  answerOne,
  customerOf,
  noContent,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId, shopTime } from '../state.ts';

export const shoppingListRoutes: readonly ResourceRoute[] = [
  {
    type: 'shopping-lists',
    methods: {
      GET: {
        handle: (call) =>
          call.id
            ? answerOne(show(call, ownShoppingList(call, call.id)))
            : answerMany(ownLists(call).map((list) => show(call, list))),
      },
      POST: { attributes: { name: isText }, handle: createList },
      PATCH: { attributes: { name: isText }, handle: renameList },
      DELETE: {
        handle: (call) => {
          call.state.shoppingLists.delete(ownShoppingList(call, call.id).id);
          return noContent;
        },
      },
    },
  },
];

export function ownShoppingList(call: ResourceCall, id: string | null | undefined): ShoppingList {
  if (!id) refuse('shoppingListIdMissing');
  const list = ownLists(call).find((each) => each.id === id);
  if (list === undefined) refuse('shoppingListNotFound');
  return list;
}

function ownLists(call: ResourceCall): ShoppingList[] {
  return [...call.state.shoppingLists.values()].filter((each) => each.owner === call.user.reference);
}

function createList(call: ResourceCall) {
  const owner = customerOf(call).reference;
  const name = freeName(call);
  const now = shopTime();
  const list: ShoppingList = { id: newId(), owner, name, items: [], createdAt: now, updatedAt: now };
  call.state.shoppingLists.set(list.id, list);
  return answerOne(show(call, list), 201);
}

function renameList(call: ResourceCall) {
  const list = ownShoppingList(call, call.id);
  list.name = freeName(call, list);
  list.updatedAt = shopTime();
  return answerOne(show(call, list));
}

function freeName(call: ResourceCall, except?: ShoppingList): string {
  const name = textOf(call.attributes, 'name');
  if (ownLists(call).some((each) => each !== except && each.name === name)) refuse('shoppingListNameTaken');
  return name;
}

function show(call: ResourceCall, list: ShoppingList): Resource {
  const customer = call.state.customers.get(list.owner);
  const owner = customer === undefined ? '' : `${customer.firstName} ${customer.lastName}`;
  const { id, name, createdAt, updatedAt } = list;
  const numberOfItems = list.items.reduce((total, item) => total + item.quantity, 0);
  return { type: 'shopping-lists', id, attributes: { owner, name, numberOfItems, createdAt, updatedAt } };
}

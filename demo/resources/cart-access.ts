import { companyUsers, readOnlyGroup } from '../data/companies.ts';
import type { Cart } from '../entities.ts';
import { refuse } from '../http/refusals.ts';
import type { ResourceCall } from '../http/resource.ts';

type Access = 'owner' | 'write' | 'read' | 'none';

/** The cart that a customer may see; a foreign one does not exist for anybody else. */
export function readCart(call: ResourceCall, id: string | null | undefined): Cart {
  if (!id) refuse('cartIdMissing');
  const cart = call.state.carts.get(id);
  if (cart === undefined || accessTo(call, cart) === 'none') refuse('cartNotFound');
  return cart;
}

/** A cart shared for reading may not be changed. */
export function changeCart(call: ResourceCall, id: string | null | undefined): Cart {
  const cart = readCart(call, id);
  if (accessTo(call, cart) === 'read') refuse('cartActionForbidden');
  return cart;
}

/** Only its owner gives a cart away or deletes it. */
export function ownCart(call: ResourceCall, id: string | null | undefined): Cart {
  const cart = readCart(call, id);
  if (accessTo(call, cart) !== 'owner') refuse('cartActionForbidden');
  return cart;
}

export function visibleCarts(call: ResourceCall): Cart[] {
  return [...call.state.carts.values()].filter((cart) => accessTo(call, cart) !== 'none');
}

export function isOwner(call: ResourceCall, cart: Cart): boolean {
  return cart.owner === callerOf(call);
}

/** Carts of guests are found by the id in their header alone. */
export function callerOf(call: ResourceCall): string {
  return call.anonymousId === '' ? call.user.reference : `anonymous:${call.anonymousId}`;
}

function accessTo(call: ResourceCall, cart: Cart): Access {
  if (isOwner(call, cart)) return 'owner';
  const own = companyUsers
    .filter((user) => user.customer === call.user.reference)
    .map((user) => user.id as string);
  const shared = [...call.state.sharedCarts.values()].find(
    (each) => each.cartId === cart.id && own.includes(each.idCompanyUser),
  );
  if (shared === undefined || call.anonymousId !== '') return 'none';
  return shared.idCartPermissionGroup === readOnlyGroup ? 'read' : 'write';
}

import { cartPermissionGroups, companyUsers } from '../data/companies.ts';
import type { SharedCart } from '../entities.ts';
import { isInteger, isText, numberOf, textOf } from '../http/attributes.ts';
import {
  answerMany,
  answerOne,
  noContent,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
} from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';
import { newId } from '../state.ts';
import { isOwner, readCart } from './cart-access.ts';
import { showSharedCart } from './cart-views.ts';

export const sharedCartRoutes: readonly ResourceRoute[] = [
  {
    type: 'shared-carts',
    parent: 'carts',
    methods: {
      POST: { attributes: { idCompanyUser: isText, idCartPermissionGroup: isInteger }, handle: shareCart },
      PATCH: { attributes: { idCartPermissionGroup: isInteger }, handle: changeSharing },
      DELETE: { handle: endSharing },
    },
  },
  { type: 'cart-permission-groups', methods: { GET: { handle: readGroups } } },
];

function shareCart(call: ResourceCall) {
  const cart = readCart(call, call.parents.get('carts'));
  if (!isOwner(call, cart)) refuse('sharingForbidden');
  const idCompanyUser = textOf(call.attributes, 'idCompanyUser');
  const target = companyUsers.find((user) => user.id === idCompanyUser);
  if (target === undefined) refuse('companyUserNotFound');
  const isColleague = companyUsers.some(
    (user) => user.customer === call.user.reference && user.companyId === target.companyId,
  );
  if (!isColleague) refuse('sharingOutsideCompany');
  const existing = [...call.state.sharedCarts.values()];
  if (existing.some((each) => each.cartId === cart.id && each.idCompanyUser === idCompanyUser))
    refuse('cartAlreadyShared');
  const shared = { id: newId(), cartId: cart.id, idCompanyUser, idCartPermissionGroup: wantedGroup(call) };
  call.state.sharedCarts.set(shared.id, shared);
  return answerOne(showSharedCart(shared), 201);
}

function changeSharing(call: ResourceCall) {
  const shared = ownSharing(call);
  shared.idCartPermissionGroup = wantedGroup(call);
  return answerOne(showSharedCart(shared));
}

function endSharing(call: ResourceCall) {
  call.state.sharedCarts.delete(ownSharing(call).id);
  return noContent;
}

function ownSharing(call: ResourceCall): SharedCart {
  const shared = call.state.sharedCarts.get(call.id ?? '');
  const cart = shared && call.state.carts.get(shared.cartId);
  if (shared === undefined || cart === undefined) refuse('sharedCartNotFound');
  if (!isOwner(call, cart)) refuse('sharingForbidden');
  return shared;
}

function wantedGroup(call: ResourceCall): number {
  const id = numberOf(call.attributes, 'idCartPermissionGroup');
  if (!cartPermissionGroups.some((group) => group.id === id)) refuse('cartPermissionGroupNotFound');
  return id;
}

function readGroups(call: ResourceCall) {
  if (!call.id) return answerMany(cartPermissionGroups.map(showGroup));
  const group = cartPermissionGroups.find((each) => String(each.id) === call.id);
  if (group === undefined) refuse('cartPermissionGroupUnknown');
  return answerOne(showGroup(group));
}

function showGroup({ id, name, isDefault }: (typeof cartPermissionGroups)[number]): Resource {
  return { type: 'cart-permission-groups', id: String(id), attributes: { name, isDefault } };
}

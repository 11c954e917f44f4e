import { findOffer } from '../data/catalogue.ts';
import type { Wishlist } from '../entities.ts';
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

export const wishlistRoutes: readonly ResourceRoute[] = [
  {
    type: 'wishlists',
    methods: {
      GET: {
        handle: (call) =>
          call.id
            ? answerOne(showWishlist(ownWishlist(call, call.id)))
            : answerMany(ownWishlists(call).map(showWishlist)),
      },
      POST: { attributes: { name: isText }, handle: createWishlist },
      PATCH: { attributes: { name: isText }, handle: renameWishlist },
      DELETE: {
        handle: (call) => {
          call.state.wishlists.delete(ownWishlist(call, call.id).id);
          return noContent;
        },
      },
    },
  },
  {
    type: 'wishlist-items',
    parent: 'wishlists',
    methods: {
      POST: { attributes: { sku: isText }, handle: addItem },
      DELETE: { handle: removeItem },
    },
  },
];

function ownWishlists(call: ResourceCall): Wishlist[] {
  return [...call.state.wishlists.values()].filter((each) => each.owner === call.user.reference);
}

function ownWishlist(call: ResourceCall, id: string | null | undefined): Wishlist {
  const wishlist = ownWishlists(call).find((each) => each.id === id);
  if (wishlist === undefined) refuse('wishlistNotFound');
  return wishlist;
}

function createWishlist(call: ResourceCall) {
  const owner = customerOf(call).reference;
  const name = freeName(call);
  const now = shopTime();
  const wishlist: Wishlist = { id: newId(), owner, name, skus: [], createdAt: now, updatedAt: now };
  call.state.wishlists.set(wishlist.id, wishlist);
  return answerOne(showWishlist(wishlist), 201);
}

function renameWishlist(call: ResourceCall) {
  const wishlist = ownWishlist(call, call.id);
  wishlist.name = freeName(call, wishlist);
  wishlist.updatedAt = shopTime();
  return answerOne(showWishlist(wishlist));
}

function freeName(call: ResourceCall, except?: Wishlist): string {
  const name = textOf(call.attributes, 'name');
  if (ownWishlists(call).some((each) => each !== except && each.name === name)) refuse('wishlistNameTaken');
  return name;
}

function addItem(call: ResourceCall) {
  const wishlist = ownWishlist(call, call.parents.get('wishlists'));
  const sku = textOf(call.attributes, 'sku');
  if (findOffer(sku) === undefined) refuse('wishlistItemRefused');
  if (!wishlist.skus.includes(sku)) wishlist.skus.push(sku);
  wishlist.updatedAt = shopTime();
  return answerOne(showItem(wishlist, sku), 201);
}

function removeItem(call: ResourceCall) {
  const wishlist = ownWishlist(call, call.parents.get('wishlists'));
  const at = wishlist.skus.indexOf(call.id ?? '');
  if (at < 0) refuse('wishlistItemNotFound');
  wishlist.skus.splice(at, 1);
  wishlist.updatedAt = shopTime();
  return noContent;
}

function showWishlist({ id, name, skus, createdAt, updatedAt }: Wishlist): Resource {
  return { type: 'wishlists', id, attributes: { name, numberOfItems: skus.length, createdAt, updatedAt } };
}

export function showItems(wishlist: Wishlist): Resource[] {
  return wishlist.skus.map((sku) => showItem(wishlist, sku));
}

function showItem(wishlist: Wishlist, sku: string): Resource {
  const offer = findOffer(sku);
  const merchantReference = offer?.product.merchantReference ?? null;
  const availability = {
    isAvailable: (offer?.concrete.stock ?? 0) > 0,
    quantity: offer?.concrete.stock ?? 0,
  };
  return {
    type: 'wishlist-items',
    id: sku,
    self: `/wishlists/${wishlist.id}/wishlist-items/${sku}`,
    attributes: { productOfferReference: null, merchantReference, id: sku, sku, availability },
  };
}

import type { Review } from '../entities.ts';
import { isRating, isText, numberOf, optional, textOf } from '../http/attributes.ts';
import { answerMany, answerOne, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { nextNumber } from '../state.ts';
import { productOf } from './product-views.ts';

export const reviewRoutes: readonly ResourceRoute[] = [
  {
    type: 'product-reviews',
    parent: 'abstract-products',
    methods: {
      GET: { handle: listReviews },
      POST: {
        attributes: { rating: isRating, summary: isText, description: optional(isText), nickname: isText },
        handle: createReview,
      },
    },
  },
];

function listReviews(call: ResourceCall) {
  const { sku } = productOf(call.parents.get('abstract-products'));
  const reviews = [...call.state.reviews.values()].filter(
    (review) => review.abstractSku === sku && review.approved,
  );
  return answerMany(reviews.filter((review) => !call.id || review.id === call.id).map(showReview));
}

/** 202: a review is shown once the back office has approved it. */
function createReview(call: ResourceCall) {
  const { sku } = productOf(call.parents.get('abstract-products'));
  const review: Review = {
    id: String(nextNumber(call.state)),
    abstractSku: sku,
    author: call.user.reference,
    rating: numberOf(call.attributes, 'rating'),
    summary: textOf(call.attributes, 'summary'),
    description: textOf(call.attributes, 'description'),
    nickname: textOf(call.attributes, 'nickname'),
    approved: false,
  };
  call.state.reviews.set(review.id, review);
  return answerOne(showReview(review), 202);
}

function showReview({ id, abstractSku, rating, nickname, summary, description }: Review): Resource {
  const self = `/abstract-products/${abstractSku}/product-reviews/${id}`;
  return { type: 'product-reviews', id, self, attributes: { rating, nickname, summary, description } };
}

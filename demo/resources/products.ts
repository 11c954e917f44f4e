import { merchants } from '../data/pages.ts';
import {
  findOffer,
  findProduct,
  type Offer,
  type Product,
  products,
  unitPriceOf,
  urlOf,
} from '../data/products.ts';
import type { Review } from '../entities.ts';
import { collection, pick, reading } from '../http/collection.ts';
import { refuse } from '../http/refusals.ts';
import {
  isRating,
  isText,
  numberOf,
  optional,
  type Resource,
  type ResourceCall,
  type ResourceRoute,
  textOf,
} from '../http/resource.ts';
import { nextNumber } from '../state.ts';
import { categoryTreeLinks } from './pages.ts';

/** The catalogue: public, and nothing but reviews is written. */
export const productRoutes: readonly ResourceRoute[] = [
  reading('abstract-products', (call) => showProduct(call, productOf(call.id).sku)),
  reading('concrete-products', (call) => showConcrete(call, concreteOf(call.id).concrete.sku)),
  partOf('abstract-products', 'abstract-product-prices', productOf, pricesOf),
  partOf('abstract-products', 'abstract-product-availabilities', productOf, ({ concretes }) => {
    const quantity = concretes.reduce((total, concrete) => total + concrete.stock, 0);
    return { availability: quantity > 0, quantity: decimal(quantity) };
  }),
  reading(
    'related-products',
    (call) => productOf(call.parents.get('abstract-products')).related.map((sku) => showProduct(call, sku)),
    'abstract-products',
  ),
  partOf('concrete-products', 'concrete-product-prices', concreteOf, ({ product }, call) =>
    pricesOf(product, call),
  ),
  partOf('concrete-products', 'concrete-product-availabilities', concreteOf, ({ concrete: { stock } }) => {
    return { availability: stock > 0, quantity: decimal(stock), isNeverOutOfStock: false };
  }),
  collection<Review, Product>({
    type: 'product-reviews',
    parent: 'abstract-products',
    parentOf: (_, sku) => productOf(sku),
    reads: 'list',
    records: (call, { sku }) => reviewsOf(call, sku).filter(({ id }) => !call.id || id === call.id),
    show: (_, review) => {
      const self = `/abstract-products/${review.abstractSku}/product-reviews/${review.id}`;
      const attributes = pick(review, 'rating', 'nickname', 'summary', 'description');
      return { type: 'product-reviews', id: review.id, self, attributes };
    },
    create: {
      attributes: { rating: isRating, summary: isText, description: optional(isText), nickname: isText },
      status: 202,
      run: createReview,
    },
  }),
  collection<(typeof merchants)[number]>({
    type: 'merchants',
    records: () => merchants,
    missing: 'merchantNotFound',
    show: showMerchant,
  }),
  reading('catalog-search', search),
  reading('catalog-search-suggestions', (call) => {
    const abstractProducts = findByName(call).map((product) => summarize(call, product));
    const attributes = {
      completion: [],
      abstractProducts,
      categoryCollection: categoryTreeLinks(call.locale),
    };
    return [{ type: 'catalog-search-suggestions', id: null, attributes }];
  }),
];

/** What a product has exactly once, the shop answers as a collection of one. */
function partOf<T extends Product | Offer>(
  parent: string,
  type: string,
  find: (sku: string | undefined) => T,
  attributesOf: (owner: T, call: ResourceCall) => object,
): ResourceRoute {
  const show = (call: ResourceCall) => {
    const owner = find(call.parents.get(parent));
    const id = 'concrete' in owner ? owner.concrete.sku : owner.sku;
    return [{ type, id, self: `/${parent}/${id}/${type}`, attributes: attributesOf(owner, call) }];
  };
  return reading(type, show, parent);
}

function productOf(sku: string | null | undefined): Product {
  if (!sku) refuse('abstractSkuMissing');
  return findProduct(sku) ?? refuse('abstractProductNotFound');
}

function concreteOf(sku: string | null | undefined): Offer {
  if (!sku) refuse('concreteSkuMissing');
  return findOffer(sku) ?? refuse('concreteProductNotFound');
}

function decimal(quantity: number): string {
  return `${quantity}.0000000000`;
}

function reviewsOf(call: ResourceCall, sku: string): Review[] {
  return [...call.state.reviews.values()].filter((each) => each.abstractSku === sku && each.approved);
}

/** A review is shown once the back office has approved it. */
function createReview({ state, attributes, user }: ResourceCall, { sku }: Product): Review {
  const review: Review = {
    ...{ id: String(nextNumber(state)), abstractSku: sku, author: user.reference, approved: false },
    rating: numberOf(attributes, 'rating'),
    summary: textOf(attributes, 'summary'),
    description: textOf(attributes, 'description'),
    nickname: textOf(attributes, 'nickname'),
  };
  state.reviews.set(review.id, review);
  return review;
}

export function showProduct(call: ResourceCall, sku: string): Resource {
  const product = productOf(sku);
  const { merchantReference, concretes } = product;
  const name = product.name[call.locale];
  const ratings = reviewsOf(call, sku).map((review) => review.rating);
  const average = ratings.reduce((total, rating) => total + rating, 0) / ratings.length;
  const superAttributes: Record<string, string[]> = {};
  for (const [key, value] of concretes.flatMap((each) => Object.entries(each.superAttributes))) {
    superAttributes[key] = [...new Set([...(superAttributes[key] ?? []), value])];
  }
  return {
    type: 'abstract-products',
    id: sku,
    attributes: {
      ...{ sku, merchantReference },
      averageRating: ratings.length === 0 ? null : Number(average.toFixed(1)),
      reviewCount: ratings.length,
      ...{ name, description: product.description[call.locale], attributes: {}, superAttributes },
      attributeMap: { product_concrete_ids: concretes.map((concrete) => concrete.sku) },
      ...{ metaTitle: name, url: urlOf(product, call.locale) },
    },
    related: {
      'concrete-products': () => concretes.map((concrete) => showConcrete(call, concrete.sku)),
      merchants: () => showMerchantOf(call, merchantReference),
    },
  };
}

export function showConcrete(call: ResourceCall, sku: string): Resource {
  const { product, concrete } = concreteOf(sku);
  const { name, superAttributes } = concrete;
  return {
    type: 'concrete-products',
    id: sku,
    attributes: {
      ...{ sku, isDiscontinued: false, productAbstractSku: product.sku, name },
      description: product.description[call.locale],
      attributes: superAttributes,
      superAttributesDefinition: Object.keys(superAttributes),
    },
    related: { 'abstract-products': () => [showProduct(call, product.sku)] },
  };
}

function pricesOf(product: Product, call: ResourceCall): object {
  const currency = call.query.values.get('currency') === 'CHF' ? 'CHF' : 'EUR';
  const grossAmount = unitPriceOf(product, currency, 'GROSS_MODE');
  const netAmount = unitPriceOf(product, currency, 'NET_MODE');
  const code = { code: currency, name: currency === 'EUR' ? 'Euro' : 'Swiss Franc' };
  const price = { priceTypeName: 'DEFAULT', netAmount, grossAmount, currency: code, volumePrices: [] };
  return { price: grossAmount, prices: [price] };
}

export function showMerchantOf(call: ResourceCall, reference: string | null): Resource[] {
  const found = merchants.filter((merchant) => merchant.reference === reference);
  return found.map((merchant) => showMerchant(call, merchant));
}

/** `merchantUrl`, not `url`, alone among the resources that have one. */
function showMerchant({ locale }: ResourceCall, merchant: (typeof merchants)[number]): Resource {
  const merchantUrl = `/${locale}/merchant/${merchant.slug}`;
  const named = { merchantName: merchant.name, merchantUrl, contactPersonRole: 'Sales' };
  const attributes = { ...named, publicEmail: merchant.email, deliveryTime: '1-3 days', categories: [] };
  return { type: 'merchants', id: merchant.reference, attributes };
}

function search(call: ResourceCall): Resource[] {
  const hits = findByName(call);
  const offset = Number(call.query.items.get('page[offset]') ?? 0) || 0;
  const limit = Number(call.query.items.get('page[limit]') ?? 12) || 12;
  const page = hits.slice(offset, offset + limit);
  const currentPage = Math.floor(offset / limit) + 1;
  const pagination = { numFound: hits.length, currentPage, currentItemsPerPage: limit };
  const attributes = { abstractProducts: page.map((product) => summarize(call, product)), pagination };
  const related = { 'abstract-products': () => page.map(({ sku }) => showProduct(call, sku)) };
  return [{ type: 'catalog-search', id: null, attributes, related }];
}

function findByName(call: ResourceCall): Product[] {
  const words = (call.query.values.get('q') ?? '').toLowerCase();
  return products.filter((product) => product.name[call.locale].toLowerCase().includes(words));
}

function summarize({ locale }: ResourceCall, product: Product) {
  const price = unitPriceOf(product, 'EUR', 'GROSS_MODE');
  return { abstractSku: product.sku, abstractName: product.name[locale], price, url: urlOf(product, locale) };
}

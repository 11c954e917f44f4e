import { findOffer, findProduct, unitPriceOf, urlOf } from '../data/catalogue.ts';
import { merchants } from '../data/pages.ts';
import type { Concrete, Product } from '../data/products.ts';
import type { Resource, ResourceCall } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';

export function productOf(sku: string | null | undefined): Product {
  if (!sku) refuse('abstractSkuMissing');
  const product = findProduct(sku);
  if (product === undefined) refuse('abstractProductNotFound');
  return product;
}

export function concreteOf(sku: string | null | undefined): { product: Product; concrete: Concrete } {
  if (!sku) refuse('concreteSkuMissing');
  const offer = findOffer(sku);
  if (offer === undefined) refuse('concreteProductNotFound');
  return offer;
}

export function showProduct(call: ResourceCall, sku: string): Resource {
  const product = productOf(sku);
  const ratings = [...call.state.reviews.values()]
    .filter((review) => review.abstractSku === sku && review.approved)
    .map((review) => review.rating);
  const average = ratings.reduce((total, rating) => total + rating, 0) / ratings.length;
  return {
    type: 'abstract-products',
    id: sku,
    attributes: {
      sku,
      merchantReference: product.merchantReference,
      averageRating: ratings.length === 0 ? null : Number(average.toFixed(1)),
      reviewCount: ratings.length,
      name: product.name[call.locale],
      description: product.description[call.locale],
      attributes: {},
      superAttributes: superAttributesOf(product),
      attributeMap: { product_concrete_ids: product.concretes.map((concrete) => concrete.sku) },
      metaTitle: product.name[call.locale],
      url: urlOf(product, call.locale),
    },
  };
}

function superAttributesOf(product: Product): Record<string, string[]> {
  const collected: Record<string, string[]> = {};
  for (const { superAttributes } of product.concretes) {
    for (const [name, value] of Object.entries(superAttributes)) {
      collected[name] = [...new Set([...(collected[name] ?? []), value])];
    }
  }
  return collected;
}

export function showConcrete(call: ResourceCall, sku: string): Resource {
  const { product, concrete } = concreteOf(sku);
  return {
    type: 'concrete-products',
    id: sku,
    attributes: {
      sku,
      isDiscontinued: false,
      productAbstractSku: product.sku,
      name: concrete.name,
      description: product.description[call.locale],
      attributes: concrete.superAttributes,
      superAttributesDefinition: Object.keys(concrete.superAttributes),
    },
  };
}

export function pricesOf(call: ResourceCall, product: Product): object {
  const currency = call.query.values.get('currency') === 'CHF' ? 'CHF' : 'EUR';
  const grossAmount = unitPriceOf(product, currency, 'GROSS_MODE');
  const netAmount = unitPriceOf(product, currency, 'NET_MODE');
  const code = { code: currency, name: currency === 'EUR' ? 'Euro' : 'Swiss Franc' };
  const price = { priceTypeName: 'DEFAULT', netAmount, grossAmount, currency: code, volumePrices: [] };
  return { price: grossAmount, prices: [price] };
}

export function showMerchant(call: ResourceCall, merchant: (typeof merchants)[number]): Resource {
  return {
    type: 'merchants',
    id: merchant.reference,
    attributes: {
      merchantName: merchant.name,
      /** Not `url`, alone among the resources that have one. */
      merchantUrl: `/${call.locale}/merchant/${merchant.slug}`,
      contactPersonRole: 'Sales',
      publicEmail: merchant.email,
      deliveryTime: '1-3 days',
      categories: [],
    },
  };
}

export function findMerchant(reference: string) {
  return merchants.find((merchant) => merchant.reference === reference);
}

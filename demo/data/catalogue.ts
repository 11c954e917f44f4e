import type { Locale, PriceMode } from '../entities.ts';
import { type Concrete, type Product, products } from './products.ts';

export type Offer = { readonly product: Product; readonly concrete: Concrete };

const bySku = new Map(products.map((product) => [product.sku, product]));
const offers = new Map<string, Offer>(
  products.flatMap((product) =>
    product.concretes.map((concrete) => [concrete.sku, { product, concrete }] as const),
  ),
);

const swissPercent = 115;
export const currencies: readonly string[] = ['EUR', 'CHF'];

export function findProduct(sku: string): Product | undefined {
  return bySku.get(sku);
}

export function findOffer(concreteSku: string): Offer | undefined {
  return offers.get(concreteSku);
}

export function urlOf(product: Product, locale: Locale): string {
  return `/${locale}/${product.slug}`;
}

/** Price of one piece in cents of the currency, with tax in gross mode and without it in net mode. */
export function unitPriceOf(product: Product, currency: string, mode: PriceMode): number {
  const gross =
    currency === 'CHF' ? Math.round((product.grossPrice * swissPercent) / 100) : product.grossPrice;
  return mode === 'GROSS_MODE' ? gross : Math.round((gross * 100) / (100 + product.taxRate));
}

import {
  findOffer,
  findProduct,
  merchants,
  type Offer,
  offersOf,
  type Product,
  products,
  unitPriceOf,
  urlOf,
} from '../data/products.ts';
import { makeReview, type Review } from '../data/seeds.ts';
import { refuse } from '../http/refusals.ts';
import { isRating, isText, type Resource, type ResourceCall, type ResourceRoute } from '../http/resource.ts';
import { fixed, type Row, reading, settable, showRow, type Table, tableRoute } from '../http/table.ts';
import { nextNumber } from '../state.ts';
import { categoryTreeLinks } from './pages.ts';

const abstractProducts = 'abstract-products';
const concreteProducts = 'concrete-products';

const merchantTable: Table<(typeof merchants)[number]> = {
  ...{ type: 'merchants', methods: ['GET'], rows: () => merchants, missing: 'merchantNotFound', fields: {} },
  /** `merchantUrl`, not `url`, alone among the resources that have one. */
  computed: ({ locale }, { name, slug }) => ({
    merchantName: name,
    merchantUrl: `/${locale}/merchant/${slug}`,
  }),
};

/** A review is shown once the back office has approved it. */
const reviews: Table<Review, Row> = {
  ...{ type: 'product-reviews', parent: abstractProducts, methods: ['GET', 'POST'], created: 202 },
  parentOf: (_, sku) => ({ id: productOf(sku).sku }),
  rows: ({ state }) => state.reviews,
  sees: (call, review) => review.isApproved && review.abstractSku === call.parents.get(abstractProducts),
  fields: {
    ...{ rating: fixed(isRating), summary: fixed(isText), nickname: fixed(isText) },
    description: settable(isText),
  },
  make: ({ state }, _, { id: sku }) => makeReview(String(nextNumber(state)), sku, false),
};

/** The catalogue: public, and nothing but reviews is written. */
export const productRoutes: readonly ResourceRoute[] = [
  reading(abstractProducts, (call) => showProduct(call, productOf(call.id).sku)),
  reading(concreteProducts, (call) => showConcrete(call, offerOf(call.id).sku)),
  partOf(abstractProducts, 'abstract-product-prices', productOf, pricesOf),
  partOf(abstractProducts, 'abstract-product-availabilities', productOf, (product) =>
    availabilityOf(offersOf(product).reduce((total, { stock }) => total + stock, 0)),
  ),
  reading(
    'related-products',
    (call) => productOf(call.parents.get(abstractProducts)).related.map((sku) => showProduct(call, sku)),
    abstractProducts,
  ),
  partOf(concreteProducts, 'concrete-product-prices', offerOf, ({ product }, call) =>
    pricesOf(product, call),
  ),
  partOf(concreteProducts, 'concrete-product-availabilities', offerOf, ({ stock }) => availabilityOf(stock)),
  tableRoute(reviews),
  tableRoute(merchantTable),
  reading('catalog-search', (call) => {
    const hits = findByName(call);
    const related = { [abstractProducts]: () => hits.map(({ sku }) => showProduct(call, sku)) };
    const attributes = { abstractProducts: hits.map((product) => summarize(call, product)) };
    return [{ type: 'catalog-search', id: null, attributes, related }];
  }),
  reading('catalog-search-suggestions', (call) => {
    const found = findByName(call).map((product) => summarize(call, product));
    const attributes = { abstractProducts: found, categoryCollection: categoryTreeLinks(call.locale) };
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
    const self = `/${parent}/${owner.sku}/${type}`;
    return [{ type, id: owner.sku, self, attributes: attributesOf(owner, call) }];
  };
  return reading(type, show, parent);
}

function productOf(sku: string | null | undefined): Product {
  return findProduct(sku || refuse('abstractSkuMissing')) ?? refuse('abstractProductNotFound');
}

function offerOf(sku: string | null | undefined): Offer {
  return findOffer(sku || refuse('concreteSkuMissing')) ?? refuse('concreteProductNotFound');
}

function availabilityOf(quantity: number): object {
  return { availability: quantity > 0, quantity: `${quantity}.0000000000` };
}

export function showProduct(call: ResourceCall, sku: string): Resource {
  const product = productOf(sku);
  const { merchantReference } = product;
  const offers = offersOf(product);
  const approved = call.state.reviews.filter((review) => review.abstractSku === sku && review.isApproved);
  const average = approved.reduce((total, { rating }) => total + rating, 0) / approved.length;
  return {
    type: abstractProducts,
    id: sku,
    attributes: {
      ...{ sku, merchantReference, name: product.name[call.locale], url: urlOf(product, call.locale) },
      averageRating: approved.length === 0 ? null : Number(average.toFixed(1)),
      reviewCount: approved.length,
      attributeMap: { product_concrete_ids: offers.map((offer) => offer.sku) },
    },
    related: {
      [concreteProducts]: () => offers.map((offer) => showConcrete(call, offer.sku)),
      merchants: () => showMerchantOf(call, product),
    },
  };
}

export function showConcrete(call: ResourceCall, sku: string): Resource {
  const { product, name } = offerOf(sku);
  return {
    type: concreteProducts,
    id: sku,
    attributes: { sku, productAbstractSku: product.sku, name },
    related: { [abstractProducts]: () => [showProduct(call, product.sku)] },
  };
}

function pricesOf(product: Product, call: ResourceCall): object {
  const code = call.query.values.get('currency') === 'CHF' ? 'CHF' : 'EUR';
  const grossAmount = unitPriceOf(product, code, 'GROSS_MODE');
  const netAmount = unitPriceOf(product, code, 'NET_MODE');
  const price = { priceTypeName: 'DEFAULT', netAmount, grossAmount, currency: { code } };
  return { price: grossAmount, prices: [price] };
}

export function showMerchantOf(call: ResourceCall, product: Product | undefined): Resource[] {
  const found = merchants.filter(({ id }) => id === product?.merchantReference);
  return found.map((merchant) => showRow(merchantTable, call, merchant, undefined));
}

function findByName(call: ResourceCall): Product[] {
  const words = (call.query.values.get('q') ?? '').toLowerCase();
  return products.filter((product) => product.name[call.locale].toLowerCase().includes(words));
}

function summarize({ locale }: ResourceCall, product: Product) {
  const price = unitPriceOf(product, 'EUR', 'GROSS_MODE');
  return { abstractSku: product.sku, abstractName: product.name[locale], price, url: urlOf(product, locale) };
}

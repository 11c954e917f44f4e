import * as data from '../data/catalogue.ts';
import { makeReview, nextNumber, type Review } from '../data/seeds.ts';
import { refuse } from '../http/refusals.ts';
import type { Resource, ResourceCall, ResourceRoute } from '../http/resource.ts';
import * as rule from '../http/rules.ts';
import { each, fixed, type Row, reading, readingOne, settable, shown, Table } from '../http/table.ts';

const abstractProducts: Table<data.Product> = new Table({
  type: 'abstract-products',
  methods: ['GET'],
  rows: () => data.products,
  missing: 'abstractProductNotFound',
  unnamed: 'abstractSkuMissing',
  isUnlisted: true,
  fields: each(shown, 'sku', 'merchantReference'),
  computed: ({ locale, state }, product) => {
    const approved = state.reviews.filter((each) => each.abstractSku === product.sku && each.isApproved);
    const average = approved.reduce((total, { rating }) => total + rating, 0) / approved.length;
    return {
      name: product.name[locale],
      url: product.url[locale],
      averageRating: approved.length === 0 ? null : Number(average.toFixed(1)),
      reviewCount: approved.length,
      attributeMap: { product_concrete_ids: data.offersOf(product).map((offer) => offer.sku) },
    };
  },
  related: (call, product) => {
    const offers = data.offersOf(product);
    return { 'concrete-products': () => offers.map((offer) => concreteProducts.show(call, offer)) };
  },
});

const concreteProducts: Table<data.Offer> = new Table({
  type: 'concrete-products',
  methods: ['GET'],
  rows: () => data.offers,
  missing: 'concreteProductNotFound',
  unnamed: 'concreteSkuMissing',
  isUnlisted: true,
  fields: { sku: shown },
  computed: (_, { product, name }) => ({ productAbstractSku: product.sku, name }),
  related: (call, { product }) => ({ 'abstract-products': () => [abstractProducts.show(call, product)] }),
});

const merchants = new Table<(typeof data.merchants)[number]>({
  type: 'merchants',
  methods: ['GET'],
  rows: () => data.merchants,
  missing: 'merchantNotFound',
  fields: {},
  /** Unlike all other resources it has `merchantUrl` instead of `url`. */
  computed: ({ locale }, { name, url }) => ({ merchantName: name, merchantUrl: url[locale] }),
});

/** A review is shown after the back office has approved it. */
const reviews = new Table<Review, Row>({
  type: 'product-reviews',
  parent: 'abstract-products',
  parentOf: abstractProducts.find.bind(abstractProducts),
  methods: ['GET', 'POST'],
  created: 202,
  rows: ({ state }) => state.reviews,
  sees: (call, { isApproved, abstractSku }) => {
    return isApproved && abstractSku === call.parents.get('abstract-products');
  },
  fields: {
    rating: fixed(rule.rating),
    ...each(fixed(rule.text), 'summary', 'nickname'),
    description: settable(rule.text),
  },
  make: ({ state }, _, { id: sku }) => makeReview(String(nextNumber(state)), { abstractSku: sku }),
});

const pages = new Table<(typeof data.cmsPages)[number]>({
  type: 'cms-pages',
  methods: ['GET'],
  rows: () => data.cmsPages,
  missing: 'cmsPageNotFound',
  sees: ({ store }, { stores }) => stores.includes(store),
  fields: {},
  computed: ({ locale }, { url }) => ({ url: url[locale] }),
});

const stores = new Table<(typeof data.stores)[number]>({
  type: 'stores',
  methods: ['GET'],
  rows: () => data.stores,
  missing: 'storeNotFound',
  fields: { country: shown },
});

/** The catalogue: public, and only reviews can be written. */
export const catalogueRoutes: readonly ResourceRoute[] = [
  ...[abstractProducts, concreteProducts, reviews, merchants, pages, stores].map(({ route }) => route),
  partOf(abstractProducts, 'abstract-product-prices', pricesOf),
  partOf(abstractProducts, 'abstract-product-availabilities', (product) =>
    availabilityOf(data.offersOf(product).reduce((total, { stock }) => total + stock, 0)),
  ),
  partOf(concreteProducts, 'concrete-product-prices', ({ product }) => pricesOf(product)),
  partOf(concreteProducts, 'concrete-product-availabilities', ({ stock }) => availabilityOf(stock)),
  reading('related-products', listRelated, 'abstract-products'),
  readingOne('catalog-search', findByName),
  readingOne('catalog-search-suggestions', findByName),
  readingOne('category-trees', ({ locale }) => ({ categoryNodesStorage: childrenOf(1, locale) })),
  reading('category-nodes', showNode),
  reading('navigations', ({ id: key, locale }) => {
    if (key !== 'MAIN_NAVIGATION') refuse('navigationNotFound');
    return { type: 'navigations', id: key, attributes: { key, nodes: childrenOf(1, locale) } };
  }),
  /** Resource types that a real shop restricts to customers: NOT its list of protected routes. */
  readingOne('customer-access', () => ({ resourceTypes: ['wishlists', 'wishlist-items'] })),
];

function partOf<T extends Row>(owners: Table<T>, type: string, attributesOf: (owner: T) => object) {
  const parent = owners.columns.type;
  const show = (call: ResourceCall) => {
    const owner = owners.find(call, call.parents.get(parent));
    return [{ type, id: owner.id, self: `/${parent}/${owner.id}/${type}`, attributes: attributesOf(owner) }];
  };
  return reading(type, show, parent);
}

function availabilityOf(quantity: number): object {
  return { availability: quantity > 0, quantity: `${quantity}.0000000000` };
}

function pricesOf(product: data.Product): object {
  const grossAmount = data.unitPriceOf(product, 'EUR', 'GROSS_MODE');
  return { price: grossAmount, prices: [{ grossAmount, currency: { code: 'EUR' } }] };
}

function listRelated(call: ResourceCall): Resource[] {
  return showProducts(call, abstractProducts.find(call, call.parents.get('abstract-products')).related);
}

export function showProducts(call: ResourceCall, skus: Iterable<string>): Resource[] {
  return Array.from(skus, (sku) => abstractProducts.show(call, abstractProducts.find(call, sku)));
}

/** Resources that an item of a cart or list may include. */
export function relatedTo(call: ResourceCall, { sku }: { readonly sku: string }) {
  const show = () => [concreteProducts.show(call, concreteProducts.find(call, sku))];
  return { 'concrete-products': show };
}

function findByName({ query, locale }: ResourceCall): object {
  const words = (query.values.get('q') ?? '').toLowerCase();
  const found = data.products.filter((product) => product.name[locale].toLowerCase().includes(words));
  const abstractProducts = found.map((product) => {
    const price = data.unitPriceOf(product, 'EUR', 'GROSS_MODE');
    return { abstractSku: product.sku, abstractName: product.name[locale], price, url: product.url[locale] };
  });
  return { abstractProducts };
}

function showNode({ id, locale }: ResourceCall): Resource {
  if (!id || !/^\d+$/.test(id)) refuse('categoryNodeIdInvalid');
  const node = data.categoryNodes.find((each) => each.id === id) ?? refuse('categoryNodeNotFound');
  const around = { children: childrenOf(node.nodeId, locale), parents: parentsOf(node, locale) };
  return { type: 'category-nodes', id, attributes: { ...branch(node, locale), ...around } };
}

function childrenOf(nodeId: number, locale: data.Locale): object[] {
  const children = data.categoryNodes.filter((node) => node.parent === nodeId);
  return children.map((node) => ({ ...branch(node, locale), children: childrenOf(node.nodeId, locale) }));
}

function parentsOf(node: data.CategoryNode, locale: data.Locale): object[] {
  const parents = data.categoryNodes.filter((each) => each.nodeId === node.parent);
  return parents.map((each) => ({ ...branch(each, locale), parents: parentsOf(each, locale) }));
}

function branch({ nodeId, name, url }: data.CategoryNode, locale: data.Locale) {
  return { nodeId, name: name[locale], url: url[locale] };
}

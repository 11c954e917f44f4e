import {
  type CategoryNode,
  categoryNodes,
  cmsPages,
  findOffer,
  findProduct,
  type Locale,
  merchants,
  type Offer,
  offersOf,
  type Product,
  products,
  stores,
  unitPriceOf,
} from '../data/catalogue.ts';
import { makeReview, nextNumber, type Review } from '../data/seeds.ts';
import { refuse } from '../http/refusals.ts';
import { isRating, isText, type Resource, type ResourceCall, type ResourceRoute } from '../http/resource.ts';
import { fixed, type Row, reading, settable, shown, Table } from '../http/table.ts';

const abstractProducts = 'abstract-products';
const concreteProducts = 'concrete-products';

const merchantTable = new Table<(typeof merchants)[number]>({
  ...{ type: 'merchants', methods: ['GET'], rows: () => merchants, missing: 'merchantNotFound', fields: {} },
  /** `merchantUrl`, not `url`, alone among the resources that have one. */
  computed: ({ locale }, { name, slug }) => ({
    merchantName: name,
    merchantUrl: `/${locale}/merchant/${slug}`,
  }),
});

/** A review is shown once the back office has approved it. */
const reviews = new Table<Review, Row>({
  ...{ type: 'product-reviews', parent: abstractProducts, methods: ['GET', 'POST'], created: 202 },
  parentOf: (_, sku) => ({ id: productOf(sku).sku }),
  rows: ({ state }) => state.reviews,
  sees: (call, review) => review.isApproved && review.abstractSku === call.parents.get(abstractProducts),
  fields: {
    ...{ rating: fixed(isRating), summary: fixed(isText), nickname: fixed(isText) },
    description: settable(isText),
  },
  make: ({ state }, _, { id: sku }) => makeReview(String(nextNumber(state)), sku),
});

const pages = new Table<(typeof cmsPages)[number]>({
  ...{ type: 'cms-pages', methods: ['GET'], rows: () => cmsPages, missing: 'cmsPageNotFound', fields: {} },
  sees: (call, page) => page.stores.includes(call.store),
  computed: ({ locale }, { url }) => ({ url: url[locale] }),
});

const storeTable = new Table<(typeof stores)[number]>({
  ...{ type: 'stores', methods: ['GET'], rows: () => stores, missing: 'storeNotFound' },
  fields: { country: shown },
});

/** Resource types that a real shop currently restricts to customers: NOT its list of protected routes. */
const resourceTypes = ['wishlists', 'wishlist-items'];

/** The catalogue: public, and nothing but reviews is written. */
export const catalogueRoutes: readonly ResourceRoute[] = [
  reading(abstractProducts, (call) => showProduct(call, productOf(call.id))),
  reading(concreteProducts, (call) => showConcrete(call, offerOf(call.id))),
  partOf(abstractProducts, 'abstract-product-prices', productOf, pricesOf),
  partOf(abstractProducts, 'abstract-product-availabilities', productOf, (product) =>
    availabilityOf(offersOf(product).reduce((total, { stock }) => total + stock, 0)),
  ),
  partOf(concreteProducts, 'concrete-product-prices', offerOf, ({ product }) => pricesOf(product)),
  partOf(concreteProducts, 'concrete-product-availabilities', offerOf, ({ stock }) => availabilityOf(stock)),
  reading(
    'related-products',
    (call) => showProducts(call, productOf(call.parents.get(abstractProducts)).related),
    abstractProducts,
  ),
  ...['catalog-search', 'catalog-search-suggestions'].map((type) =>
    reading(type, (call) => showOne(type, { abstractProducts: findByName(call) })),
  ),
  reading('category-trees', ({ locale }) =>
    showOne('category-trees', { categoryNodesStorage: childrenOf(1, locale) }),
  ),
  reading('category-nodes', showNode),
  reading('navigations', showNavigation),
  reading('customer-access', () => showOne('customer-access', { resourceTypes })),
  ...[reviews.route, merchantTable.route, pages.route, storeTable.route],
];

/** What there is exactly once, the shop answers as a collection of one. */
function showOne(type: string, attributes: object): Resource[] {
  return [{ type, id: null, attributes }];
}

function partOf<T extends Product | Offer>(
  parent: string,
  type: string,
  find: (sku: string | undefined) => T,
  attributesOf: (owner: T) => object,
): ResourceRoute {
  const show = (call: ResourceCall) => {
    const owner = find(call.parents.get(parent));
    const self = `/${parent}/${owner.sku}/${type}`;
    return [{ type, id: owner.sku, self, attributes: attributesOf(owner) }];
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

function pricesOf(product: Product): object {
  const grossAmount = unitPriceOf(product, 'EUR', 'GROSS_MODE');
  return { price: grossAmount, prices: [{ grossAmount, currency: { code: 'EUR' } }] };
}

export function showProducts(call: ResourceCall, skus: Iterable<string>): Resource[] {
  return Array.from(skus, (sku) => showProduct(call, productOf(sku)));
}

function showProduct(call: ResourceCall, product: Product): Resource {
  const { sku, merchantReference, name, url } = product;
  const offers = offersOf(product);
  const approved = call.state.reviews.filter((review) => review.abstractSku === sku && review.isApproved);
  const average = approved.reduce((total, { rating }) => total + rating, 0) / approved.length;
  return {
    type: abstractProducts,
    id: sku,
    attributes: {
      ...{ sku, merchantReference, name: name[call.locale], url: url[call.locale] },
      averageRating: approved.length === 0 ? null : Number(average.toFixed(1)),
      reviewCount: approved.length,
      attributeMap: { product_concrete_ids: offers.map((offer) => offer.sku) },
    },
    related: { [concreteProducts]: () => offers.map((offer) => showConcrete(call, offer)) },
  };
}

function showConcrete(call: ResourceCall, { sku, product, name }: Offer): Resource {
  return {
    ...{ type: concreteProducts, id: sku, attributes: { sku, productAbstractSku: product.sku, name } },
    related: { [abstractProducts]: () => [showProduct(call, product)] },
  };
}

/** What an item of a cart or a list may include. */
export function relatedTo(call: ResourceCall, { sku }: { readonly sku: string }) {
  return { [concreteProducts]: () => [showConcrete(call, offerOf(sku))] };
}

function findByName({ query, locale }: ResourceCall): object[] {
  const words = (query.values.get('q') ?? '').toLowerCase();
  const found = products.filter((product) => product.name[locale].toLowerCase().includes(words));
  return found.map((product) => {
    const price = unitPriceOf(product, 'EUR', 'GROSS_MODE');
    return { abstractSku: product.sku, abstractName: product.name[locale], price, url: product.url[locale] };
  });
}

function showNode({ id, locale }: ResourceCall): Resource {
  if (!id || !/^\d+$/.test(id)) refuse('categoryNodeIdInvalid');
  const node = categoryNodes.find((each) => String(each.nodeId) === id) ?? refuse('categoryNodeNotFound');
  const around = { children: childrenOf(node.nodeId, locale), parents: parentsOf(node, locale) };
  return { type: 'category-nodes', id, attributes: { ...branch(node, locale), ...around } };
}

function childrenOf(nodeId: number, locale: Locale): object[] {
  const children = categoryNodes.filter((node) => node.parent === nodeId);
  return children.map((node) => ({ ...branch(node, locale), children: childrenOf(node.nodeId, locale) }));
}

function parentsOf(node: CategoryNode, locale: Locale): object[] {
  const parents = categoryNodes.filter((each) => each.nodeId === node.parent);
  return parents.map((each) => ({ ...branch(each, locale), parents: parentsOf(each, locale) }));
}

function branch({ nodeId, name, url }: CategoryNode, locale: Locale) {
  return { nodeId, name: name[locale], url: url[locale] };
}

function showNavigation({ id, locale }: ResourceCall): Resource {
  if (id !== 'MAIN_NAVIGATION') refuse('navigationNotFound');
  return { type: 'navigations', id, attributes: { key: id, nodes: childrenOf(1, locale) } };
}

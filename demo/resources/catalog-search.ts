import { unitPriceOf, urlOf } from '../data/catalogue.ts';
import { type Product, products } from '../data/products.ts';
import { answerMany, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { categoryTreeLinks } from './categories.ts';

export const catalogSearchRoutes: readonly ResourceRoute[] = [
  { type: 'catalog-search', methods: { GET: { handle: search } } },
  { type: 'catalog-search-suggestions', methods: { GET: { handle: suggest } } },
];

function search(call: ResourceCall) {
  const hits = findByName(call);
  const offset = Number(call.query.items.get('page[offset]') ?? 0) || 0;
  const limit = Number(call.query.items.get('page[limit]') ?? 12) || 12;
  const abstractProducts = hits.slice(offset, offset + limit).map((product) => summarize(call, product));
  const currentPage = Math.floor(offset / limit) + 1;
  const pagination = { numFound: hits.length, currentPage, currentItemsPerPage: limit };
  return answerMany([{ type: 'catalog-search', id: null, attributes: { abstractProducts, pagination } }]);
}

function suggest(call: ResourceCall) {
  const abstractProducts = findByName(call).map((product) => summarize(call, product));
  const attributes = { completion: [], abstractProducts, categoryCollection: categoryTreeLinks(call.locale) };
  return answerMany([{ type: 'catalog-search-suggestions', id: null, attributes }]);
}

function findByName(call: ResourceCall): Product[] {
  const words = (call.query.values.get('q') ?? '').toLowerCase();
  return products.filter((product) => product.name[call.locale].toLowerCase().includes(words));
}

function summarize(call: ResourceCall, product: Product) {
  return {
    abstractSku: product.sku,
    abstractName: product.name[call.locale],
    price: unitPriceOf(product, 'EUR', 'GROSS_MODE'),
    url: urlOf(product, call.locale),
  };
}

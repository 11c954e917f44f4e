import { type CategoryNode, type CmsPage, categoryNodes, cmsPages, stores } from '../data/pages.ts';
import type { Locale } from '../entities.ts';
import { collection, pick, reading } from '../http/collection.ts';
import { refuse } from '../http/refusals.ts';
import type { Resource, ResourceCall, ResourceRoute } from '../http/resource.ts';

/** Resource types that a real shop currently restricts to customers: NOT its list of protected routes. */
const restrictedTypes = ['wishlists', 'wishlist-items'];

export const pageRoutes: readonly ResourceRoute[] = [
  reading('category-trees', ({ locale }) => {
    const attributes = { categoryNodesStorage: childrenOf(1, locale) };
    return [{ type: 'category-trees', id: null, attributes }];
  }),
  reading('category-nodes', showNode),
  collection<CmsPage>({
    type: 'cms-pages',
    records: (call) => cmsPages.filter((page) => page.stores.includes(call.store)),
    missing: 'cmsPageNotFound',
    show: ({ locale }, { id, pageKey, name, url }) => {
      const rest = { validTo: null, isSearchable: true, url: url[locale] };
      return { type: 'cms-pages', id, attributes: { pageKey, name: name[locale], ...rest } };
    },
  }),
  reading('navigations', showNavigation),
  collection<(typeof stores)[number]>({
    type: 'stores',
    records: () => stores,
    missing: 'storeNotFound',
    show: showStore,
  }),
  reading('customer-access', () => [
    { type: 'customer-access', id: null, attributes: { resourceTypes: restrictedTypes } },
  ]),
];

function showNode({ id, locale }: ResourceCall): Resource {
  if (!id || !/^\d+$/.test(id)) refuse('categoryNodeIdInvalid');
  const node = categoryNodes.find((each) => String(each.nodeId) === id) ?? refuse('categoryNodeNotFound');
  const { nodeId, order, name, url } = branch(node, locale);
  const attributes = {
    ...{ nodeId, name, metaTitle: name, isActive: true, order, url },
    children: childrenOf(nodeId, locale),
    parents: parentsOf(node, locale),
  };
  return { type: 'category-nodes', id, attributes };
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
  return { nodeId, order: 100 - nodeId, name: name[locale], url: url[locale] };
}

/** A category id is not a node id: in this shop it is ten more, so that nobody can take one for the other. */
export function categoryTreeLinks(locale: Locale): object[] {
  return categoryNodes.slice(1).map((node) => {
    return { ...pick(branch(node, locale), 'name', 'url'), idCategory: node.nodeId + 10 };
  });
}

function showNavigation({ id, locale }: ResourceCall): Resource {
  if (id !== 'MAIN_NAVIGATION') refuse('navigationNotFound');
  const nodes = categoryNodes.filter((node) => node.parent === 1);
  const links = nodes.map(({ nodeId, name, url }) => {
    const target = { nodeType: 'category', resourceId: nodeId, title: name[locale], url: url[locale] };
    return { ...target, isActive: true, children: [] };
  });
  const blog = { nodeType: 'external_url', resourceId: null, title: 'Blog', url: 'https://blog.example/' };
  const shown = [...links, { ...blog, children: [] }];
  const attributes = { key: id, name: 'Top navigation', isActive: true, nodes: shown };
  return { type: 'navigations', id, attributes };
}

function showStore(_: ResourceCall, store: (typeof stores)[number]): Resource {
  const { id, defaultCurrency, currencies, country, iso2Code, iso3Code } = store;
  const attributes = {
    ...{ timeZone: 'Europe/Berlin', defaultCurrency },
    currencies: currencies.map((code) => ({ code, name: code === 'EUR' ? 'Euro' : 'Swiss Franc' })),
    locales: Object.entries({ en: 'en_US', de: 'de_DE' }).map(([code, name]) => ({ code, name })),
    countries: [{ iso2Code, iso3Code, name: country, postalCodeMandatory: true, regions: [] }],
  };
  return { type: 'stores', id, attributes };
}

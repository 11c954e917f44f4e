import { type CategoryNode, type CmsPage, categoryNodes, cmsPages, stores } from '../data/pages.ts';
import type { Locale } from '../data/products.ts';
import { refuse } from '../http/refusals.ts';
import type { Resource, ResourceCall, ResourceRoute } from '../http/resource.ts';
import { reading, shown, type Table, tableRoute } from '../http/table.ts';

/** Resource types that a real shop currently restricts to customers: NOT its list of protected routes. */
const restrictedTypes = ['wishlists', 'wishlist-items'];

const pages: Table<CmsPage> = {
  ...{ type: 'cms-pages', methods: ['GET'], rows: () => cmsPages, missing: 'cmsPageNotFound' },
  sees: (call, page) => page.stores.includes(call.store),
  fields: {},
  computed: ({ locale }, { url }) => ({ url: url[locale] }),
};

const storeTable: Table<(typeof stores)[number]> = {
  ...{ type: 'stores', methods: ['GET'], rows: () => stores, missing: 'storeNotFound' },
  fields: { country: shown },
};

export const pageRoutes: readonly ResourceRoute[] = [
  reading('category-trees', ({ locale }) => {
    const attributes = { categoryNodesStorage: childrenOf(1, locale) };
    return [{ type: 'category-trees', id: null, attributes }];
  }),
  reading('category-nodes', showNode),
  reading('navigations', showNavigation),
  reading('customer-access', () => [
    { type: 'customer-access', id: null, attributes: { resourceTypes: restrictedTypes } },
  ]),
  tableRoute(pages),
  tableRoute(storeTable),
];

function showNode({ id, locale }: ResourceCall): Resource {
  if (!id || !/^\d+$/.test(id)) refuse('categoryNodeIdInvalid');
  const node = categoryNodes.find((each) => String(each.nodeId) === id) ?? refuse('categoryNodeNotFound');
  const around = { children: childrenOf(node.nodeId, locale), parents: parentsOf(node, locale) };
  const attributes = { ...branch(node, locale), ...around };
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
  return { nodeId, name: name[locale], url: url[locale] };
}

/** A category id is not a node id: in this shop it is ten more, so that nobody can take one for the other. */
export function categoryTreeLinks(locale: Locale): object[] {
  return categoryNodes.slice(1).map((node) => {
    return { name: node.name[locale], url: node.url[locale], idCategory: node.nodeId + 10 };
  });
}

function showNavigation({ id, locale }: ResourceCall): Resource {
  if (id !== 'MAIN_NAVIGATION') refuse('navigationNotFound');
  const nodes = categoryNodes.filter((node) => node.parent === 1);
  const links = nodes.map(({ nodeId, url }) => {
    return { nodeType: 'category', resourceId: nodeId, url: url[locale], children: [] };
  });
  const blog = { nodeType: 'external_url', resourceId: null, url: 'https://blog.example/', children: [] };
  return { type: 'navigations', id, attributes: { key: id, nodes: [...links, blog] } };
}

import { type CategoryNode, type CmsPage, categoryNodes, cmsPages } from '../data/pages.ts';
import type { Locale } from '../entities.ts';
import { answerMany, answerOne, type Resource, type ResourceCall, type ResourceRoute } from '../http/call.ts';
import { refuse } from '../http/shop-error.ts';

type Branch = { nodeId: number; order: number; name: string; url: string };

export const categoryRoutes: readonly ResourceRoute[] = [
  { type: 'category-trees', methods: { GET: { handle: (call) => answerMany([showTree(call.locale)]) } } },
  { type: 'category-nodes', methods: { GET: { handle: readNode } } },
  { type: 'cms-pages', methods: { GET: { handle: readPages } } },
  { type: 'navigations', methods: { GET: { handle: readNavigation } } },
];

function showTree(locale: Locale): Resource {
  const categoryNodesStorage = childrenOf(1, locale);
  return { type: 'category-trees', id: null, attributes: { categoryNodesStorage } };
}

function readNode(call: ResourceCall) {
  if (!call.id || !/^\d+$/.test(call.id)) refuse('categoryNodeIdInvalid');
  const node = categoryNodes.find((each) => String(each.nodeId) === call.id);
  if (node === undefined) refuse('categoryNodeNotFound');
  const { nodeId } = node;
  const name = node.name[call.locale];
  const attributes = {
    nodeId,
    name,
    metaTitle: name,
    isActive: true,
    order: 100 - nodeId,
    url: node.url[call.locale],
    children: childrenOf(nodeId, call.locale),
    parents: parentsOf(node, call.locale),
  };
  return answerOne({ type: 'category-nodes', id: String(nodeId), attributes });
}

function childrenOf(nodeId: number, locale: Locale): (Branch & { children: unknown[] })[] {
  const children = categoryNodes.filter((node) => node.parent === nodeId);
  return children.map((node) => ({ ...branch(node, locale), children: childrenOf(node.nodeId, locale) }));
}

function parentsOf(node: CategoryNode, locale: Locale): (Branch & { parents: unknown[] })[] {
  const parent = categoryNodes.find((each) => each.nodeId === node.parent);
  return parent === undefined ? [] : [{ ...branch(parent, locale), parents: parentsOf(parent, locale) }];
}

function branch(node: CategoryNode, locale: Locale): Branch {
  return { nodeId: node.nodeId, order: 100 - node.nodeId, name: node.name[locale], url: node.url[locale] };
}

/** A category id is not a node id: in this shop it is ten more, so that nobody can take one for the other. */
export function categoryTreeLinks(locale: Locale) {
  return categoryNodes.slice(1).map((node) => ({
    name: node.name[locale],
    url: node.url[locale],
    idCategory: node.nodeId + 10,
  }));
}

function readPages(call: ResourceCall) {
  const pages = cmsPages.filter((page) => page.stores.includes(call.store));
  if (!call.id) return answerMany(pages.map((page) => showPage(page, call.locale)));
  const page = pages.find((each) => each.id === call.id);
  if (page === undefined) refuse('cmsPageNotFound');
  return answerOne(showPage(page, call.locale));
}

function showPage(page: CmsPage, locale: Locale): Resource {
  const { id, pageKey } = page;
  const attributes = {
    pageKey,
    name: page.name[locale],
    validTo: null,
    isSearchable: true,
    url: page.url[locale],
  };
  return { type: 'cms-pages', id, attributes };
}

function readNavigation(call: ResourceCall) {
  if (call.id !== 'MAIN_NAVIGATION') refuse('navigationNotFound');
  const nodes = categoryNodes
    .filter((node) => node.parent === 1)
    .map((node) => ({
      nodeType: 'category',
      resourceId: node.nodeId,
      title: node.name[call.locale],
      url: node.url[call.locale],
      isActive: true,
      children: [],
    }));
  const external = {
    nodeType: 'external_url',
    resourceId: null,
    title: 'Blog',
    url: 'https://blog.example/',
    children: [],
  };
  const attributes = { key: call.id, name: 'Top navigation', isActive: true, nodes: [...nodes, external] };
  return answerOne({ type: 'navigations', id: call.id, attributes });
}

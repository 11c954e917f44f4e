import { type EntityType, isEntityId, isShortEnough, type Mapping } from '../mapping.ts';

/** More than a catalogue page or a whole navigation has; what is beyond is left out. */
const maxMappings = 500;
const maxDepth = 12;

type Json = Record<string, unknown>;

/**
 * Finds what URLs lead to in a JSON:API document of the shop: abstract products, category trees and nodes (recursively),
 * CMS pages, merchants and search suggestions, in `data` and in `included`. Anything else, or malformed, gives nothing.
 */
export function extractMappings(body: Buffer): ReadonlyMap<string, Mapping> {
  const found = new Map<string, Mapping>();
  const document = parse(body);
  if (document === undefined) return found;
  for (const resource of [...listOf(document.data), ...listOf(document.included)])
    readResource(resource, found);
  return found;
}

function readResource(resource: unknown, found: Map<string, Mapping>): void {
  if (!isObject(resource) || !isObject(resource.attributes)) return;
  const { attributes, id } = resource;
  switch (resource.type) {
    case 'abstract-products':
    case 'cms-pages':
      add(found, attributes.url, resource.type, id);
      break;
    case 'merchants':
      add(found, attributes.merchantUrl, 'merchants', id);
      break;
    case 'category-nodes':
      readNode(attributes, found, 0);
      break;
    case 'category-trees':
      for (const node of listOf(attributes.categoryNodesStorage)) readNode(node, found, 0);
      break;
    case 'catalog-search-suggestions':
      for (const product of listOf(attributes.abstractProducts)) {
        if (isObject(product)) add(found, product.url, 'abstract-products', product.abstractSku);
      }
      break;
  }
}

function readNode(node: unknown, found: Map<string, Mapping>, depth: number): void {
  if (!isObject(node) || depth > maxDepth || found.size >= maxMappings) return;
  const { nodeId } = node;
  if (Number.isSafeInteger(nodeId)) add(found, node.url, 'category-nodes', String(nodeId));
  for (const child of listOf(node.children)) readNode(child, found, depth + 1);
  for (const parent of listOf(node.parents)) readNode(parent, found, depth + 1);
}

function add(found: Map<string, Mapping>, url: unknown, entityType: EntityType, entityId: unknown): void {
  if (typeof url !== 'string' || !url.startsWith('/') || !isShortEnough(url) || !isEntityId(entityId)) return;
  if (found.size < maxMappings) found.set(url, { entityType, entityId });
}

/** JSON:API puts one resource or a list. */
function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? [value] : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parse(body: Buffer): Json | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

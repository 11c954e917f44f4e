import { setTimeout as wait } from 'node:timers/promises';
import {
  categoryNodes,
  cmsPages,
  type Localized,
  merchants,
  products,
  urlRedirects,
} from '../data/catalogue.ts';
import { selfQuery } from '../http/answer.ts';
import { refuse } from '../http/refusals.ts';
import { phpDecode, rawPhpDecode } from '../http/request.ts';
import type { ResourceCall, ResourceRoute } from '../http/resource.ts';

/** Found in every store unless it names some. */
type Entity = { readonly entityType: string; readonly entityId: string; readonly stores?: readonly string[] };

export const urlResolverRoute: ResourceRoute = {
  type: 'url-resolver',
  methods: { GET: { handle: resolveUrl } },
};

const entities = new Map<string, Entity>();
for (const { url, sku } of products) add(url, 'abstract-products', sku);
for (const { url, nodeId } of categoryNodes) add(url, 'category-nodes', String(nodeId));
for (const { url, id, stores } of cmsPages) add(url, 'cms-pages', id, { stores });
for (const { slug, id } of merchants)
  add({ en: `/en/merchant/${slug}`, de: `/de/merchant/${slug}` }, 'merchants', id);

function add(urls: Localized, entityType: string, entityId: string, only: Pick<Entity, 'stores'> = {}): void {
  for (const url of Object.values(urls)) entities.set(keyOf(url), { entityType, entityId, ...only });
}

/** A URL is decoded three times in all, and case and outer spaces do not count: a real shop reads it so. */
async function resolveUrl(call: ResourceCall) {
  const { settings, stopping } = call;
  if (settings.resolverLatencyMs > 0) await wait(settings.resolverLatencyMs, undefined, { signal: stopping });
  if (call.query.lists.has('url')) throw new TypeError('url is a list');
  const url = phpDecode(call.query.values.get('url') ?? '');
  if (url === '' || url === '0') refuse('urlMissing');
  const key = keyOf(rawPhpDecode(url));
  // A redirect gives the entity at its end.
  const entity = entities.get(keyOf(urlRedirects.get(key) ?? key));
  if (entity === undefined || entity.stores?.includes(call.store) === false) refuse('urlNotFound');
  const { entityType, entityId } = entity;
  const self = `/url-resolver${selfQuery(call)}`;
  const attributes = { entityType, entityId };
  return { status: 200, data: [{ type: 'url-resolver', id: null, self, attributes }] };
}

/** The key of the shop's storage: `pc's` and `pc-s` are one. */
function keyOf(url: string): string {
  return url
    .trim()
    .toLowerCase()
    .replace(/["' \0\r\n]/g, '-');
}

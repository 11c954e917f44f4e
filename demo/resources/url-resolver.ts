import { setTimeout as wait } from 'node:timers/promises';
import { categoryNodes, cmsPages, merchants, products, urlRedirects } from '../data/catalogue.ts';
import { selfQuery } from '../http/answer.ts';
import { refuse } from '../http/refusals.ts';
import { phpDecode, rawPhpDecode } from '../http/request.ts';
import type { ResourceCall, ResourceRoute } from '../http/resource.ts';

export const urlResolverRoute: ResourceRoute = {
  type: 'url-resolver',
  methods: { GET: { handle: resolveUrl } },
};

/** Resources by their key in each language. */
const entities = new Map(
  Object.entries({
    'abstract-products': products,
    'category-nodes': categoryNodes,
    'cms-pages': cmsPages,
    merchants,
  }).flatMap(([entityType, rows]) =>
    rows.flatMap((row) => Object.values(row.url).map((url) => [keyOf(url), { entityType, row }] as const)),
  ),
);

/** A URL is decoded three times in all; case and outer spaces do not matter, as in a real shop. */
async function resolveUrl(call: ResourceCall) {
  const { settings, stopping } = call;
  if (settings.resolverLatencyMs > 0) await wait(settings.resolverLatencyMs, undefined, { signal: stopping });
  if (call.query.lists.has('url')) throw new TypeError('url is a list');
  const url = phpDecode(call.query.values.get('url') ?? '');
  if (url === '' || url === '0') refuse('urlMissing');
  const key = keyOf(rawPhpDecode(url));
  // A redirect returns the resource at its end.
  const entity = entities.get(keyOf(urlRedirects.get(key) ?? key));
  if (entity === undefined) refuse('urlNotFound');
  const { entityType, row } = entity;
  if ('stores' in row && !row.stores.includes(call.store)) refuse('urlNotFound');
  const self = `/url-resolver${selfQuery(call)}`;
  const attributes = { entityType, entityId: row.id };
  return { status: 200, data: [{ type: 'url-resolver', id: null, self, attributes }] };
}

/** The key in the shop's storage: `pc's` and `pc-s` have the same. */
function keyOf(url: string): string {
  return url
    .trim()
    .toLowerCase()
    .replace(/["' \0\r\n]/g, '-');
}

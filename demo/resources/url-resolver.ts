import { setTimeout as wait } from 'node:timers/promises';
import { categoryNodes, cmsPages, urlRedirects } from '../data/pages.ts';
import { type Locale, merchants, products, urlOf } from '../data/products.ts';
import { selfQuery } from '../http/answer.ts';
import { refuse } from '../http/refusals.ts';
import { phpDecode, rawPhpDecode } from '../http/request.ts';
import type { ResourceCall, ResourceRoute } from '../http/resource.ts';

type Entity = ReturnType<typeof entity>;

export const urlResolverRoutes: readonly ResourceRoute[] = [
  { type: 'url-resolver', methods: { GET: { handle: resolveUrl } } },
];

const locales: readonly Locale[] = ['en', 'de'];
const entities = new Map<string, Entity>(
  locales.flatMap(entitiesIn).map(([url, entity]) => [keyOf(url), entity]),
);
const redirects = new Map(Object.entries(urlRedirects).map(([from, to]) => [keyOf(from), to]));

/** A URL is decoded three times in all, and case and outer spaces do not count: a real shop reads it so. */
async function resolveUrl(call: ResourceCall) {
  const { settings, stopping } = call;
  if (settings.resolverLatencyMs > 0) await wait(settings.resolverLatencyMs, undefined, { signal: stopping });
  if (call.query.lists.has('url')) throw new TypeError('url is a list');
  const url = phpDecode(call.query.values.get('url') ?? '');
  if (url === '' || url === '0') refuse('urlMissing');
  const entity = find(keyOf(rawPhpDecode(url)), call.store);
  if (entity === undefined) refuse('urlNotFound');
  const { entityType, entityId } = entity;
  const self = `/url-resolver${selfQuery(call)}`;
  return {
    status: 200,
    data: [{ type: 'url-resolver', id: null, self, attributes: { entityType, entityId } }],
  };
}

/** A redirect gives the entity at its end. Seeded redirects have no loops. */
function find(key: string, store: string): Entity | undefined {
  const target = redirects.get(key);
  if (target !== undefined) return find(keyOf(target), store);
  const entity = entities.get(key);
  return entity?.stores === undefined || entity.stores.includes(store) ? entity : undefined;
}

/** The key of the shop's storage: `pc's` and `pc-s` are one. */
function keyOf(url: string): string {
  return url
    .trim()
    .toLowerCase()
    .replace(/["' \0\r\n]/g, '-');
}

function entitiesIn(locale: Locale): (readonly [url: string, Entity])[] {
  return [
    ...products.map((each) => [urlOf(each, locale), entity('abstract-products', each.sku)] as const),
    ...categoryNodes.map(
      ({ url, nodeId }) => [url[locale], entity('category-nodes', String(nodeId))] as const,
    ),
    ...cmsPages.map(({ url, id, stores }) => [url[locale], entity('cms-pages', id, stores)] as const),
    ...merchants.map(({ slug, id }) => [`/${locale}/merchant/${slug}`, entity('merchants', id)] as const),
  ];
}

/** Found in every store unless it names some. */
function entity(entityType: string, entityId: string, stores?: readonly string[]) {
  return { entityType, entityId, stores };
}

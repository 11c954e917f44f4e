import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import type { Action } from './pair-shop.ts';

/** An action of the shop, by method, resource type and types of its parents. An id does not select another action. */
export interface ShopRoute {
  readonly method: string;
  readonly parents: readonly string[];
  readonly type: string;
}

interface Row extends ShopRoute {
  readonly hasId: boolean;
  /** The row also covers all paths below. */
  readonly hasRest: boolean;
}

const shippedLists = {
  contract: 'config/protected-resources.yaml',
  hardened: 'config/protected-resources.hardened.yaml',
} as const;
export type ListName = keyof typeof shippedLists;
export const listNames = Object.keys(shippedLists) as ListName[];

export function listFileOf(list: ListName): string {
  return shippedLists[list];
}

/** Reads the list without code of shopward. */
function rowsOf(list: ListName): Row[] {
  const text = readFileSync(path.join(import.meta.dirname, '../../../..', shippedLists[list]), 'utf8');
  const { groups } = parse(text) as { groups: Record<string, string[]> };
  return Object.values(groups)
    .flat()
    .map((line) => {
      const [method = '', template = ''] = line.split(' ');
      const segments = template.slice(1).split('/');
      const hasRest = segments.at(-1) === '**';
      if (hasRest) segments.pop();
      const parents = segments.filter((_, i) => i % 2 === 0);
      const type = parents.pop() ?? '';
      return { method, parents, type, hasId: segments.length % 2 === 0, hasRest };
    });
}

const rows: Readonly<Record<ListName, readonly Row[]>> = {
  contract: rowsOf('contract'),
  hardened: rowsOf('hardened'),
};

const shopMethods = ['GET', 'POST', 'PATCH', 'DELETE'];

/** Open routes, and routes that the lists do not name individually. */
const more: readonly ShopRoute[] = [
  ...['access-tokens', 'refresh-tokens', 'token', 'customers', 'agent-access-tokens', 'checkout'].map(
    (type) => ({ method: 'POST', parents: [], type }),
  ),
  ...['stores', 'abstract-products', 'url-resolver', 'catalog-search', 'items'].map((type) => ({
    method: 'GET',
    parents: [],
    type,
  })),
  { method: 'POST', parents: ['guest-carts'], type: 'guest-cart-items' },
  { method: 'POST', parents: ['quote-requests'], type: 'quote-request-cancel' },
  { method: 'POST', parents: ['agent-quote-requests'], type: 'agent-quote-request-revise' },
];

const routeKey = ({ method, parents, type }: ShopRoute) => `${method} ${[...parents, type].join('/')}`;

/** Every route of the shop, once. */
export const shopRoutes: readonly ShopRoute[] = [
  ...new Map(
    [...rows.hardened, ...more]
      .flatMap(({ method, parents, type }) =>
        (method === 'ANY' ? shopMethods : [method]).map((one) => ({ method: one, parents, type })),
      )
      .map((route) => [routeKey(route), route]),
  ).values(),
];

/** The path of a route with these ids, the last of which may be left out. */
export function pathOf({ parents, type }: ShopRoute, ids: readonly string[], hasId: boolean): string[] {
  const pairs = [...parents, type].flatMap((name, i) => [name, ids[i] ?? '1']);
  return hasId ? pairs : pairs.slice(0, -1);
}

/** Whether a list says that the action needs a token. An id after a row that ends in a name changes nothing. */
export function isProtectedBy(list: ListName, action: Action): boolean {
  const route = shopRoutes[action.route];
  if (route === undefined || isRefusedByShop(route, action)) return false;
  return rows[list].some(({ method, parents, type, hasId, hasRest }) => {
    if (method !== 'ANY' && method !== route.method) return false;
    const isBelow = hasRest && route.parents.includes(type);
    if (!isBelow && type !== route.type) return false;
    return parents.every((parent) => route.parents.includes(parent)) && (!hasId || action.hasId);
  });
}

/** A change of one cart, which needs `If-Match` with the settings as shipped. */
export function isTrackedWrite(action: Action): boolean {
  const route = shopRoutes[action.route];
  if (route === undefined || isRefusedByShop(route, action) || !action.hasId) return false;
  const { method, parents, type } = route;
  return type === 'carts' && parents.length === 0 && (method === 'PATCH' || method === 'DELETE');
}

/** An exchange of a refresh token. */
export function isExchange(action: Action): boolean {
  const route = shopRoutes[action.route];
  return route?.method === 'POST' && (route.type === 'refresh-tokens' || route.type === 'token');
}

function isRefusedByShop({ method }: ShopRoute, { hasEmptyId }: Action): boolean {
  return hasEmptyId && (method === 'PATCH' || method === 'DELETE');
}

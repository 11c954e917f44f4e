import type { Action, ResourceRoute, ShopMethod } from './call.ts';
import type { ResourcePair } from './resource-path.ts';

export type Match = { readonly route: ResourceRoute; readonly action: Action; readonly template: string };

/**
 * Finds a route as a real shop does, aliases included: the LAST pair is the resource. A route without a parent needs
 * the first pair to be of its own type; one with a parent needs the first pair to be its parent and the pair after it
 * to be of its type, and is found without any parent too. So `/carts/x/carts/ID` acts on cart ID.
 */
export function findRoute(
  routes: readonly ResourceRoute[],
  method: string,
  pairs: readonly ResourcePair[],
): Match | null {
  const last = pairs.at(-1);
  if (last === undefined) return null;
  const route = candidates(routes, last.type, pairs).find((candidate) => fits(candidate, pairs));
  const action = route?.methods[method as ShopMethod];
  if (route === undefined || action === undefined) return null;
  if (method === 'POST' && last.id !== null) return null;
  return { route, action, template: templateOf(method, route, pairs.length > 1, last.id !== null) };
}

/** Of several routes of one type the nested ones win on a nested path, the others on a plain one. */
function candidates(
  routes: readonly ResourceRoute[],
  type: string,
  pairs: readonly ResourcePair[],
): readonly ResourceRoute[] {
  const isNested = pairs.length > 1;
  const found = routes.filter(
    (route) =>
      route.type === type &&
      (route.parent === undefined || !isNested || pairs.some((pair) => pair.type === route.parent)),
  );
  return found.length > 1 ? found.filter((route) => (route.parent !== undefined) === isNested) : found;
}

function fits(route: ResourceRoute, pairs: readonly ResourcePair[]): boolean {
  const [first, second] = pairs;
  if (route.parent === undefined || pairs.length === 1) return first?.type === route.type;
  return first?.type === route.parent && second?.type === route.type;
}

/** A closed set of names, however odd the path was: counters are kept by it. */
function templateOf(method: string, route: ResourceRoute, isNested: boolean, hasId: boolean): string {
  const parent = isNested && route.parent !== undefined ? `/${route.parent}/{id}` : '';
  return `${method} ${parent}/${route.type}${hasId ? '/{id}' : ''}`;
}

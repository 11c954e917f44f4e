import { foldSegment } from '../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate, templateShape } from '../http/path-template.ts';
import type { ProtectedResources } from './protected-list-document.ts';
import type { ProtectedResource } from './protected-resource.ts';

/** How the second of two lists differs from the first; each part in the order of its list. */
export interface ListDifference {
  /** Routes that only the second list protects. */
  readonly added: readonly ProtectedResource[];
  /** Routes that only the first list protects: these are open from now on, unless another row covers them. */
  readonly removed: readonly ProtectedResource[];
  /** Routes of both that ask for something else. */
  readonly changed: readonly RouteChange[];
}

export interface RouteChange {
  readonly before: ProtectedResource;
  readonly after: ProtectedResource;
  readonly what: readonly ('scopes' | 'observe' | 'group' | 'template')[];
  /** Whether the second list asks for less than the first. */
  readonly isLooser: boolean;
}

/**
 * Compares two lists by route: method and path, whatever the names of its parameters and the case of its literals.
 * Rows of one route in one list (a warning there) count as their union.
 */
export function diffProtectedLists(a: ProtectedResources, b: ProtectedResources): ListDifference {
  const before = byRoute(a);
  const after = byRoute(b);
  return {
    added: [...after].filter(([route]) => !before.has(route)).map(([, row]) => row),
    removed: [...before].filter(([route]) => !after.has(route)).map(([, row]) => row),
    changed: [...before].flatMap(([route, row]) => changeOf(row, after.get(route)) ?? []),
  };
}

/** Names a route: equal for rows that match the same requests. */
export function routeKey({ method, template }: Pick<ProtectedResource, 'method' | 'template'>): string {
  const path = parsePathTemplate(template);
  return `${method} ${isTemplateProblem(path) ? template : templateShape(path, foldSegment)}`;
}

function byRoute({ rows }: ProtectedResources): Map<string, ProtectedResource> {
  const routes = new Map<string, ProtectedResource>();
  for (const row of rows) {
    const key = routeKey(row);
    const other = routes.get(key);
    routes.set(key, other ? union(other, row) : row);
  }
  return routes;
}

function union(one: ProtectedResource, other: ProtectedResource): ProtectedResource {
  const scopes = [...new Set([...one.scopes, ...other.scopes])];
  return { ...one, scopes, observe: one.observe && other.observe };
}

function changeOf(before: ProtectedResource, after: ProtectedResource | undefined): RouteChange | undefined {
  if (after === undefined) return undefined;
  const kept = before.scopes.filter((scope) => after.scopes.includes(scope));
  const differs = {
    scopes: kept.length !== before.scopes.length || kept.length !== after.scopes.length,
    observe: before.observe !== after.observe,
    group: before.group !== after.group,
    template: before.template !== after.template,
  };
  const what = (['scopes', 'observe', 'group', 'template'] as const).filter((part) => differs[part]);
  if (what.length === 0) return undefined;
  const isLooser = kept.length < before.scopes.length || (after.observe && !before.observe);
  return { before, after, what, isLooser };
}

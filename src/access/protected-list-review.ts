import { foldSegment, isVersionSegment } from '../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate, templateShape } from '../http/path-template.ts';
import type { Problem } from '../lib/problem.ts';
import {
  type ProtectedList,
  type ProtectedResource,
  type ProtectedResources,
  type ResourceMethod,
  resourceId,
} from './protected-list.ts';
import { createRowCover } from './protected-list-cover.ts';
import { commonPlaces, headerAlone, type TokenPlace } from './token-places.ts';

/** How the second of two lists differs from the first; each part in the order of its list. */
interface ListDifference {
  /** Routes that only the second list protects. */
  readonly added: readonly ProtectedResource[];
  /** Rows that only the first list has; `isLooser`: no other row of the second asks their requests for as much. */
  readonly removed: readonly { readonly row: ProtectedResource; readonly isLooser: boolean }[];
  /** Routes of both that ask for something else. */
  readonly changed: readonly RouteChange[];
}

export interface RouteChange {
  readonly before: ProtectedResource;
  readonly after: ProtectedResource;
  readonly what: readonly ('scopes' | 'tokenIn' | 'observe' | 'group' | 'template')[];
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
  const gone = [...before].filter(([route]) => !after.has(route)).map(([, row]) => row);
  const cover = gone.length === 0 ? undefined : createRowCover(b.rows);
  return {
    added: [...after].filter(([route]) => !before.has(route)).map(([, row]) => row),
    removed: gone.map((row) => ({ row, isLooser: !row.observe && cover?.asksAsMuch(row) !== true })),
    changed: [...before].flatMap(([route, row]) => changeOf(row, after.get(route)) ?? []),
  };
}

/** Names a route: equal for rows that match the same requests. */
export function routeKey({ method, template }: Pick<ProtectedResource, 'method' | 'template'>): string {
  return `${method} ${shapeOf(template)}`;
}

function shapeOf(template: string): string {
  const path = parsePathTemplate(template);
  return isTemplateProblem(path) ? template : templateShape(path, foldSegment);
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
  const tokenIn = commonPlaces(one.tokenIn, other.tokenIn);
  return { ...one, scopes, tokenIn, observe: one.observe && other.observe };
}

function changeOf(before: ProtectedResource, after: ProtectedResource | undefined): RouteChange | undefined {
  if (after === undefined) return undefined;
  const kept = before.scopes.filter((scope) => after.scopes.includes(scope));
  const differs = {
    scopes: kept.length !== before.scopes.length || kept.length !== after.scopes.length,
    tokenIn: !hasSamePlaces(before, after),
    observe: before.observe !== after.observe,
    group: before.group !== after.group,
    template: before.template !== after.template,
  };
  const what = (['scopes', 'tokenIn', 'observe', 'group', 'template'] as const).filter(
    (part) => differs[part],
  );
  if (what.length === 0) return undefined;
  const isTakenElsewhere = !placesOf(after).every((place) => placesOf(before).includes(place));
  const isLooser =
    kept.length < before.scopes.length || isTakenElsewhere || (after.observe && !before.observe);
  return { before, after, what, isLooser };
}

type Placed = Pick<ProtectedResource, 'tokenIn'>;

function placesOf({ tokenIn = headerAlone }: Placed): readonly TokenPlace[] {
  return tokenIn;
}

function hasSamePlaces(one: Placed, other: Placed): boolean {
  return placesOf(one).toSorted().join(' ') === placesOf(other).toSorted().join(' ');
}

/**
 * What a list leaves open beside what it protects: often an omission, at times on purpose, so a note. And where it asks
 * otherwise for what may be the same: a warning. Pure; in the order of the rows, each open route named once.
 *
 * - a protected GET of a collection whose members are open, and the other way round; of a collection below a member
 *   only when the list knows its members at all
 * - an open GET of a member that PATCH, PUT or DELETE protects
 * - one of PATCH and DELETE open where the other one is protected
 * - a row whose form (with an id after it, without its version, with a format suffix) has a row of its own that asks
 *   for something else: to a shop that reads paths so, both are one
 * - the first row with ANY, which OPTIONS passes
 */
export function findSuspicious(list: ProtectedList): Problem[] {
  const isProtected = (method: ResourceMethod, template: string) =>
    list.match({ method, segments: template.slice(1).split('/'), isFormPost: false }) !== undefined;
  // Each path is taken apart once: its neighbours and forms are found by their shapes.
  const shapes = list.rows.map(({ template }) => shapeOf(template));
  const written = new Map(list.rows.map((row, i) => [`${row.method} ${shapes[i]}`, row]));
  const paths = new Set(shapes);
  const named = new Set<string>();
  const findOpen = (row: ProtectedResource, shape: string) =>
    neighbours(row, shape, paths).flatMap((route) => {
      const key = `${route.method} ${route.shape}`;
      if (named.has(key) || isProtected(route.method, route.template)) return [];
      named.add(key);
      return `${resourceId(row)} is protected, ${resourceId(route)} is open`;
    });
  const firstAny = list.rows.find(({ method }) => method === 'ANY');
  return list.rows.flatMap((row, i) => {
    const shape = shapes[i] ?? '';
    const remarks = [
      ...findOpen(row, shape).map((text) => ({ severity: 'note' as const, text })),
      ...formsOf(row, shape).flatMap((form) => {
        const text = differenceOf(row, form, written.get(`${form.method} ${form.shape}`));
        return text === undefined ? [] : { severity: 'warning' as const, text };
      }),
    ];
    if (row === firstAny) {
      const text = 'ANY means every method but OPTIONS, which never needs a token';
      remarks.push({ severity: 'note', text });
    }
    return remarks.map((remark) => ({ ...row.source, ...remark }));
  });
}

/** A route beside a row, with the shape of its path. */
interface Form extends Pick<ProtectedResource, 'method' | 'template'> {
  readonly shape: string;
}

interface Neighbour extends Form {
  readonly method: ResourceMethod;
}

function differenceOf(
  row: ProtectedResource,
  form: Form,
  other: ProtectedResource | undefined,
): string | undefined {
  if (other === undefined) return undefined;
  const isSame =
    row.observe === other.observe &&
    hasSamePlaces(row, other) &&
    row.scopes.length === other.scopes.length &&
    row.scopes.every((scope) => other.scopes.includes(scope));
  if (isSame) return undefined;
  const place = `${resourceId(other)} in line ${other.source.line}`;
  return `${place} asks for something else, and may be the same to the shop (as ${resourceId(form)})`;
}

/** What a shop may take for the row's path: an id after its name, no version in front, a format suffix. */
function formsOf({ method, template }: ProtectedResource, shape: string): Form[] {
  if (template.endsWith('**') || template === '/') return [];
  const [first = '', ...rest] = shape.slice(1).split('/');
  const forms: Form[] = [];
  if (!template.endsWith('}')) {
    forms.push({ method, template: memberOf(template), shape: `${shape}/{}` });
    const last = template.slice(template.lastIndexOf('/') + 1);
    const front = shape.slice(0, shape.lastIndexOf('/') + 1);
    for (const suffix of ['.json', '.xml'])
      forms.push({ method, template: template + suffix, shape: front + foldSegment(last + suffix) });
  }
  if (isVersionSegment(first) && rest.length > 0)
    forms.push({
      method,
      template: template.slice(template.indexOf('/', 1)),
      shape: `/${rest.join('/')}`,
    });
  return forms;
}

/** The path of a member, with a name that no other of its parameters has. */
function memberOf(collection: string): string {
  return `${collection}/${collection.includes('{id}') ? '{member_id}' : '{id}'}`;
}

/** Routes that one expects to be protected when this row is. */
function neighbours(
  { method, template }: ProtectedResource,
  shape: string,
  paths: ReadonlySet<string>,
): Neighbour[] {
  if (template.endsWith('**') || template === '/') return [];
  const last = template.slice(template.lastIndexOf('/') + 1);
  const isMember = last.startsWith('{');
  const collection = template.slice(0, -last.length - 1);
  if (!isMember) {
    const member = { method: 'GET', template: memberOf(template), shape: `${shape}/{}` } as const;
    const isKnown = collection === '' || paths.has(member.shape);
    return method === 'GET' && isKnown ? [member] : [];
  }
  const outer = shape.slice(0, shape.lastIndexOf('/'));
  if (method === 'GET') return collection === '' ? [] : [{ method, template: collection, shape: outer }];
  const writes = { PATCH: ['DELETE'], PUT: ['DELETE'], DELETE: ['PATCH'], POST: [], ANY: [] } as const;
  return [
    ...(method === 'POST' || method === 'ANY' ? [] : [{ method: 'GET' as const, template, shape }]),
    ...writes[method].map((other) => ({ method: other, template, shape })),
  ];
}

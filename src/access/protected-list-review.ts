import type { Problem } from '../lib/problem.ts';
import { asksNoMore, type Conditional } from './claim-conditions.ts';
import {
  type OpenRow,
  type ProtectedList,
  type ProtectedResource,
  type ResourceMethod,
  type RowSequence,
  resourceId,
  routeKey,
  shapeOf,
} from './protected-list.ts';
import { createRowCover, sampleSegments } from './protected-list-cover.ts';
import { commonPlaces, headerAlone, type TokenPlace } from './token-places.ts';

/** How the second of two lists differs from the first; each part in the order of its list. */
interface ListDifference {
  /** Routes that only the second list protects. */
  readonly added: readonly ProtectedResource[];
  /** Rows that only the first list has; `isLooser`: no row of the second asks as much of their requests. */
  readonly removed: readonly { readonly row: ProtectedResource; readonly isLooser: boolean }[];
  /** Routes of both that ask for something else. */
  readonly changed: readonly RouteChange[];
}

/** All rows of one route: the first one, with what they ask together; `asks`: the conditions of each. */
type UnitedRow = ProtectedResource & { readonly asks: readonly Conditional[] };

export interface RouteChange {
  readonly before: UnitedRow;
  readonly after: UnitedRow;
  readonly what: readonly (
    | 'scopes'
    | 'require'
    | 'tokenIn'
    | 'observe'
    | 'credentials'
    | 'group'
    | 'template'
  )[];
  /** Whether the second list asks for less than the first. */
  readonly isLooser: boolean;
}

interface ComparedList {
  readonly rows: RowSequence;
  readonly open?: RowSequence<OpenRow>;
}

/**
 * Compares two lists by route: method and path, whatever the names of its parameters and the case of its literals.
 * Rows of one route in one list (a warning there) count as their union.
 */
export function diffProtectedLists(a: ComparedList, b: ComparedList): ListDifference {
  const routes = differingRoutes(a, b);
  const before = byRoute(a, routes);
  const after = byRoute(b, routes);
  const gone = [...before].filter(([route]) => !after.has(route)).map(([, row]) => row);
  const cover = gone.length === 0 ? undefined : createRowCover(b.rows);
  const opened = openedOnly(b, a);
  return {
    added: [...[...after].filter(([route]) => !before.has(route)).map(([, row]) => row), ...openedOnly(a, b)],
    removed: [
      ...gone.map((row) => ({ row, isLooser: !row.observe && cover?.asksAsMuch(row) !== true })),
      ...opened.map((row) => ({ row, isLooser: true })),
    ],
    changed: [...before].flatMap(([route, row]) => changeOf(row, after.get(route)) ?? []),
  };
}

/** POST rows that only the first list has with `open: true`. Opening a POST counts as removing a row. */
function openedOnly({ open = [] }: ComparedList, other: ComparedList): ProtectedResource[] {
  const known = new Set(Array.from(other.open ?? [], routeKey));
  return [...open]
    .filter((row) => !known.has(routeKey(row)))
    .map((row) => ({ ...row, scopes: [], observe: false }));
}

/** Routes with a row that only one of the lists has. Only these are compared: after an edit of a long list they are few. */
function differingRoutes(a: ComparedList, b: ComparedList): ReadonlySet<string> {
  const textOf = ({ source, ...row }: ProtectedResource) => JSON.stringify(Object.entries(row).sort());
  const before = new Set(Array.from(a.rows, textOf));
  const routes = new Set<string>();
  for (const row of b.rows) if (!before.delete(textOf(row))) routes.add(routeKey(row));
  if (before.size > 0) for (const row of a.rows) if (before.has(textOf(row))) routes.add(routeKey(row));
  return routes;
}

function byRoute({ rows }: ComparedList, wanted: ReadonlySet<string>): Map<string, UnitedRow> {
  const found = wanted.size === 0 ? [] : Iterator.from(rows).filter((row) => wanted.has(routeKey(row)));
  return new Map(Array.from(Map.groupBy(found, routeKey), ([route, group]) => [route, unite(group)]));
}

/** As `strictest` in protected-list.ts: a row that observes adds no `require` to one that enforces. */
function unite(rows: readonly ProtectedResource[]): UnitedRow {
  const observe = rows.every((row) => row.observe);
  return {
    ...(rows[0] as ProtectedResource),
    scopes: [...new Set(rows.flatMap((row) => row.scopes))],
    tokenIn: rows.map((row) => row.tokenIn).reduce(commonPlaces),
    credentials: rows.every((row) => row.credentials === 'shop') ? 'shop' : undefined,
    ...{ observe, asks: rows.map((row) => (row.observe === observe ? row : { ...row, require: undefined })) },
  };
}

function changeOf(before: UnitedRow, after: UnitedRow | undefined): RouteChange | undefined {
  if (after === undefined) return undefined;
  const kept = before.scopes.filter((scope) => after.scopes.includes(scope));
  const differs = {
    scopes: kept.length !== before.scopes.length || kept.length !== after.scopes.length,
    require: !asksNoMore(before.asks, after.asks) || !asksNoMore(after.asks, before.asks),
    tokenIn: !hasSamePlaces(before, after),
    observe: before.observe !== after.observe,
    credentials: before.credentials !== after.credentials,
    group: before.group !== after.group,
    template: before.template !== after.template,
  };
  const what = (
    ['scopes', 'require', 'tokenIn', 'observe', 'credentials', 'group', 'template'] as const
  ).filter((part) => differs[part]);
  if (what.length === 0) return undefined;
  const isTakenElsewhere = !placesOf(after).every((place) => placesOf(before).includes(place));
  const isLooser =
    kept.length < before.scopes.length ||
    !asksNoMore(before.asks, after.asks) ||
    isTakenElsewhere ||
    (after.observe && !before.observe) ||
    (after.credentials === 'shop' && before.credentials !== 'shop');
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
 * What a list leaves open beside what it protects: often an omission, at times on purpose, so a note. Pure; in the order of
 * the rows, each open route named once.
 *
 * - a protected GET of a collection whose members are open, and the other way round; for a collection below a member
 *   only if the list has a row for its members
 * - an open GET of a member that PATCH, PUT or DELETE protects
 * - one of PATCH and DELETE open where the other one is protected
 * - the first row with ANY, which OPTIONS passes, and the first with credentials: shop
 * - what each open row opens; a warning if it opens nothing
 */
export function findSuspicious(list: ProtectedList): Problem[] {
  const isProtected = (method: ResourceMethod, template: string) =>
    list.match({ method, segments: template.slice(1).split('/'), isFormPost: false }) !== undefined;
  const rows = [...list.rows];
  // Each path is split once; routes of the same shape are looked up by it.
  const shapes = rows.map(({ template }) => shapeOf(template));
  const paths = new Set(shapes);
  const named = new Set<string>();
  const findOpen = (row: ProtectedResource, shape: string) =>
    neighbours(row, shape, paths).flatMap((route) => {
      const key = `${route.method} ${route.shape}`;
      if (named.has(key) || isProtected(route.method, route.template)) return [];
      named.add(key);
      return `${resourceId(row)} is protected, ${resourceId(route)} is open`;
    });
  const firstAny = rows.find(({ method }) => method === 'ANY');
  const firstShop = rows.find(({ credentials }) => credentials === 'shop');
  const noteOn = ({ source }: OpenRow, text: string): Problem => ({ ...source, severity: 'note', text });
  return [
    ...rows.flatMap((row, i) => [
      ...findOpen(row, shapes[i] ?? '').map((text) => noteOn(row, text)),
      ...(row === firstAny ? [noteOn(row, anyText)] : []),
      ...(row === firstShop ? [noteOn(row, shopText)] : []),
    ]),
    ...Array.from(list.open, (row) => remarkOnOpen(row, list)),
  ];
}

const anyText = 'ANY means every method but OPTIONS, which never needs a token';
const shopText =
  'credentials: shop lets HTTP Basic and the cookies of auth.sessionCookies pass unchecked: the shop must check them';

/** The note on an open row: which rows it switches off for a POST; a warning if it switches off none. */
function remarkOnOpen(row: OpenRow, list: ProtectedList): Problem {
  const segments = sampleSegments(row.template);
  const rowsOf = (method: ResourceMethod) =>
    list.matchRows({ method, segments, isFormPost: false }).map((met) => resourceId(met.row));
  const id = `${resourceId(row)} with open: true`;
  const own = rowsOf('POST');
  if (own.length > 0)
    return { ...row.source, severity: 'warning', text: `${id} has no effect: ${own[0]} matches, too` };
  const opened = (['PATCH', 'PUT', 'DELETE', 'GET'] as const).flatMap(rowsOf);
  if (opened.length === 0)
    return { ...row.source, severity: 'warning', text: `${id} has no effect: no row protects its path` };
  const text = `${id}: if the shop allows method override, a POST without a token can act as ${opened.join(', ')}`;
  return { ...row.source, severity: 'note', text };
}

/** A route beside a row, with the shape of its path. */
interface Neighbour {
  readonly method: ResourceMethod;
  readonly template: string;
  readonly shape: string;
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

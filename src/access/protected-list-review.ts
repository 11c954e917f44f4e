import type { Problem } from '../lib/problem.ts';
import { asksNoMore, type Conditional } from './claim-conditions.ts';
import { numberTerms } from './packed-list.ts';
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
import { createRowCover, type RowCover, sampleSegments } from './protected-list-cover.ts';
import { commonLocations, headerAlone } from './token-locations.ts';

/** One route that differs between two lists. `isLooser`: the second list requires less. */
export interface ListDifference {
  readonly kind: 'added' | 'removed' | 'changed';
  readonly row: ProtectedResource;
  /** Empty unless the row has changed. */
  readonly what: readonly ChangedPart[];
  readonly isLooser: boolean;
}

/** All rows of one route, combined: the first row with all that they require; `asks`: the conditions of each row. */
type UnitedRow = ProtectedResource & { readonly asks: readonly Conditional[] };

/** The parts of a row that are compared. Its group and the names of its parameters do not affect requests. */
const parts = ['scopes', 'require', 'tokenIn', 'observe', 'credentials'] as const;
type ChangedPart = (typeof parts)[number];

interface ComparedList {
  readonly rows: RowSequence;
  readonly open?: RowSequence<OpenRow>;
}

/**
 * Compares two lists by route: method and path, regardless of parameter names and the case of literals. Several rows of one
 * route in one list (a warning there) are combined. `coverOf`: the cover of the second list, if needed.
 */
export function* differencesOf(
  a: ComparedList,
  b: ComparedList,
  coverOf: () => RowCover = () => createRowCover(b.rows),
): Generator<ListDifference> {
  let cover: RowCover | undefined;
  for (const { before, after } of differingRoutes(a, b)) {
    const [was, row] = [before && unite(a.rows, before), after && unite(b.rows, after)];
    if (was === undefined) {
      if (row !== undefined) yield { kind: 'added', row, what: [], isLooser: false };
      continue;
    }
    const what = row === undefined ? [] : changedParts(was, row);
    if (row !== undefined && what.length === 0) continue;
    cover ??= coverOf();
    const isLooser = !was.observe && !cover(was);
    yield { kind: row === undefined ? 'removed' : 'changed', row: row ?? was, what, isLooser };
  }
  for (const row of openedOnly(a, b)) yield { kind: 'added', row, what: [], isLooser: false };
  for (const row of openedOnly(b, a)) yield { kind: 'removed', row, what: [], isLooser: true };
}

/** POST rows that have `open: true` only in the first list. A row that is opened is reported as removed. */
function openedOnly({ open = [] }: ComparedList, other: ComparedList): ProtectedResource[] {
  const known = new Set(Array.from(other.open ?? [], routeKey));
  return [...open]
    .filter((row) => !known.has(routeKey(row)))
    .map((row) => ({ ...row, scopes: [], observe: false }));
}

/** Indexes of a route's rows in both lists. */
interface RouteRows {
  before?: number[];
  after?: number[];
}

/** Routes with a row that only one list has. Indexes save memory: all 60,000 rows may differ. */
function differingRoutes(a: ComparedList, b: ComparedList): Iterable<RouteRows> {
  const numberOf = numberTerms();
  const textOf = (row: ProtectedResource) => `${numberOf(row)} ${resourceId(row)}`;
  const left = new Set(Iterator.from(b.rows).map(textOf));
  const routes = new Map<string, RouteRows>();
  for (const row of a.rows) if (!left.delete(textOf(row))) routes.set(routeKey(row), {});
  if (left.size > 0) for (const row of b.rows) if (left.has(textOf(row))) routes.set(routeKey(row), {});
  if (routes.size === 0) return [];
  for (const [side, { rows }] of [['before', a] as const, ['after', b] as const]) {
    let index = 0;
    for (const row of rows) {
      const route = routes.get(routeKey(row));
      const indexes = route?.[side] ?? [];
      indexes.push(index);
      if (route !== undefined) route[side] = indexes;
      index += 1;
    }
  }
  return routes.values();
}

/** As in `strictest` in protected-list.ts: if one row enforces, `require` of rows that observe does not count. */
function unite(all: RowSequence, indexes: readonly number[]): UnitedRow {
  const rows = indexes.flatMap((index) => all.at(index) ?? []);
  const observe = rows.every((row) => row.observe);
  return {
    ...(rows[0] as ProtectedResource),
    scopes: [...new Set(rows.flatMap((row) => row.scopes))],
    tokenIn: rows.map((row) => row.tokenIn).reduce(commonLocations),
    credentials: rows.every((row) => row.credentials === 'shop') ? 'shop' : undefined,
    ...{ observe, asks: rows.map((row) => (row.observe === observe ? row : { ...row, require: undefined })) },
  };
}

function changedParts(before: UnitedRow, after: UnitedRow): readonly ChangedPart[] {
  const differs = {
    scopes: !areSame(before.scopes, after.scopes),
    require: !asksNoMore(before.asks, after.asks) || !asksNoMore(after.asks, before.asks),
    tokenIn: !areSame(before.tokenIn ?? headerAlone, after.tokenIn ?? headerAlone),
    ...{ observe: before.observe !== after.observe, credentials: before.credentials !== after.credentials },
  };
  return parts.filter((part) => differs[part]);
}

function areSame(some: readonly string[], others: readonly string[]): boolean {
  return some.length === others.length && some.every((one) => others.includes(one));
}

/**
 * Finds open routes next to protected ones: often an omission, sometimes on purpose, so only a note. Pure; in the order of
 * the rows, each open route once.
 *
 * - GET of a collection is protected but GET of its members open, or the reverse; for members of a nested collection, only if the
 *   list has a row with their path
 * - GET of a member is open, but PATCH, PUT or DELETE of it is protected
 * - DELETE is open but PATCH or PUT protected, or PATCH is open but DELETE protected
 * - the first row with ANY, which does not include OPTIONS, and the first with credentials: shop
 * - for each open row, the rows that it disables for POST; a warning if it has no effect
 */
export function findSuspicious(list: ProtectedList): Problem[] {
  const isProtected = (method: ResourceMethod, template: string) =>
    list.match({ method, segments: template.slice(1).split('/'), isFormPost: false }) !== undefined;
  const rows = [...list.rows];
  // Shapes of all paths, to look up whether the list has a row with that shape.
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

interface Neighbour {
  readonly method: ResourceMethod;
  readonly template: string;
  readonly shape: string;
}

/** Routes that are usually protected if this row is. */
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
    const id = template.includes('{id}') ? '{member_id}' : '{id}';
    const member = { method: 'GET', template: `${template}/${id}`, shape: `${shape}/{}` } as const;
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

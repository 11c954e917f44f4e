import type { Method, UsualMethod } from '../http/canonical-request.ts';
import type { SegmentInterner } from '../http/path-folding.ts';
import { isVersionSegment } from '../http/path-folding.ts';
import {
  anyId,
  type IndexedRoute,
  isBare,
  isItem,
  isOneType,
  isRest,
  type RowEntry,
  rowEntry,
} from './path-index.ts';
import type { PathRules } from './path-interpretations.ts';

export interface PathTableRow<T> {
  readonly method: Method | 'ANY';
  /** A path of literals, `{name}`s and optionally a final `**`. */
  readonly template: string;
  readonly data: T;
}

/**
 * What a request asks for: a method, or any method. A form POST may override its method in the body, and rows can name only
 * the usual methods.
 */
type Asked = UsualMethod | 'form';

/** Rows name only the usual methods; a request with another one matches the rows of every method. */
export const askedOf: Readonly<Record<Method, Asked>> = {
  ...{ GET: 'GET', HEAD: 'HEAD', POST: 'POST', PUT: 'PUT', PATCH: 'PATCH', DELETE: 'DELETE' },
  ...{ OPTIONS: 'OPTIONS', SEARCH: 'form', QUERY: 'form', PROPFIND: 'form', REPORT: 'form' },
};

/** A row also applies to these forms of its path: with one id after its name, or without its version segment. */
export type RowForm = 'item-form' | 'without-version';

/** The path of a row or of one of its forms; `flags` as in a `RowEntry`. */
interface Route {
  readonly parts: readonly string[];
  readonly flags: number;
}

/**
 * Every route of the rows, with interned literals: first as written, then the forms that the rules allow. An explicit row wins
 * over a form of another row with the same route and method. Templates are canonical.
 */
export function routesOf(
  rows: readonly Pick<PathTableRow<unknown>, 'method' | 'template'>[],
  interner: SegmentInterner,
  { itemForms = true, versionSegments = true }: Pick<PathRules, 'itemForms' | 'versionSegments'>,
): IndexedRoute[] {
  const idsOf = ({ parts }: Route) =>
    parts.map((part) => (isParameter(part) ? anyId : interner.intern(part)));
  const written = rows.map(({ template }, rowIndex): IndexedRoute => {
    const route = writtenRoute(template);
    return { ids: idsOf(route), entry: rowEntry(rowIndex, route.flags) };
  });
  /** The methods of the explicit rows of each route, a bit for each. */
  const methods = new Map<string, number>();
  for (const [rowIndex, { method }] of rows.entries()) {
    const key = keyOf(written[rowIndex] as IndexedRoute);
    methods.set(key, (methods.get(key) ?? 0) | bitOf(method));
  }
  const all = written.slice();
  for (const [rowIndex, { method, template }] of rows.entries()) {
    for (const form of formsOf(writtenRoute(template), itemForms, versionSegments)) {
      const route = { ids: idsOf(form), entry: rowEntry(rowIndex, form.flags) };
      const bits = bitOf(method) | bitOf('ANY');
      if (((methods.get(keyOf(route)) ?? 0) & bits) === 0) all.push(route);
    }
  }
  return all;
}

export function writtenRoute(template: string): Route {
  const parts = segmentsOf(template);
  const rest = template.endsWith('/**') ? isRest : 0;
  return { parts, flags: rest | (parts.length === 1 ? isOneType : 0) };
}

function formsOf(row: Route, itemForms: boolean, versionSegments: boolean): Route[] {
  const bare = versionSegments ? withoutVersion(row) : undefined;
  const forms = bare === undefined ? [row] : [row, bare];
  const items = itemForms ? forms.flatMap((form) => itemForm(form) ?? []) : [];
  return bare === undefined ? items : [bare, ...items];
}

/** Equal for rows that differ only in method and parameter names. */
function keyOf({ ids, entry }: IndexedRoute): string {
  return `${entry & isRest} ${ids.join('/')}`;
}

function bitOf(method: Method | 'ANY'): number {
  return method === 'ANY' ? 1 : 2 << allMethods.indexOf(method);
}

const allMethods = Object.keys(askedOf);

/** Segments of a row's template, without a final `**`. */
function segmentsOf(template: string): string[] {
  const segments = template === '/' ? [] : template.slice(1).split('/');
  if (segments.at(-1) === '**') segments.pop();
  return segments;
}

export function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

/** A shop may ignore an id after a name: a row for `/carts` also covers `/carts/{}`. */
function itemForm({ parts, flags }: Route): Route | undefined {
  const last = parts.at(-1);
  if ((flags & isRest) !== 0 || last === undefined || isParameter(last)) return undefined;
  return { parts: [...parts, '{}'], flags: flags | isItem };
}

/** Without its version a form must still have a literal. */
function withoutVersion({ parts: [first, ...parts], flags }: Route): Route | undefined {
  if (first === undefined || isParameter(first) || !isVersionSegment(first)) return undefined;
  if (parts.every(isParameter)) return undefined;
  return { parts, flags: (flags & isRest) | isBare | (parts.length === 1 ? isOneType : 0) };
}

/** The segments of the route of an entry, by the template of its row. */
export function partsOf(template: string, entry: RowEntry): readonly string[] {
  const parts = segmentsOf(template);
  if ((entry & isBare) !== 0) parts.shift();
  if ((entry & isItem) !== 0) parts.push('{}');
  return parts;
}

export function isAskedBy(method: Method | 'ANY', asked: Asked): boolean {
  if (method === 'OPTIONS' || asked === 'OPTIONS') return method === asked;
  if (method === 'ANY' || asked === 'form') return true;
  return method === asked || (method === 'GET' && asked === 'HEAD');
}

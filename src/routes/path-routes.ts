import type { Steps } from '../lib/slices.ts';
import { isExtensionMethod, type Method, methods, type UsualMethod } from '../http/canonical-request.ts';
import type { SegmentInterner } from '../http/path-folding.ts';
import { isVersionSegment } from '../http/path-folding.ts';
import type { PathRules } from './path-interpretations.ts';
import { isTemplateProblem, parsePathTemplate, type TemplateSegment } from '../http/path-template.ts';

export interface PathTableRow<T> {
  readonly method: Method | 'ANY';
  /** Path of literals, `{name}`s and perhaps a last `**`. */
  readonly template: string;
  readonly data: T;
}

/**
 * What a request asks for: its method, or any method. A form POST may override its method in the body, and rows know
 * only the usual methods.
 */
type Asked = UsualMethod | 'form';

/** Rows know no other methods than the usual ones: whoever comes by another asks for any. */
export const askedOf: Readonly<Record<Method, Asked>> = {
  ...{ GET: 'GET', HEAD: 'HEAD', POST: 'POST', PUT: 'PUT', PATCH: 'PATCH', DELETE: 'DELETE' },
  ...{ OPTIONS: 'OPTIONS', SEARCH: 'form', QUERY: 'form', PROPFIND: 'form', REPORT: 'form' },
};

/** A row also applies to these forms of its path: with one id after its name, or without its version segment. */
export type RowForm = 'item-form' | 'without-version';

export interface Row<T> {
  /** Place in the list of rows. */
  readonly index: number;
  /** The template's segments, or those of a form of it. */
  readonly segments: readonly TemplateSegment[];
  /** Ends in `**`. */
  readonly rest: boolean;
  /** Undefined: the row as it is written. */
  readonly form: RowForm | undefined;
  /** One resource type, and perhaps an id: matches only where a type stands. */
  readonly isOneType: boolean;
  readonly data: T;
}

/** Rows that differ by method and parameter names only: one route of the router. */
export interface Route<T> {
  /** Ids of the template's literals; undefined for a parameter. */
  readonly ids: readonly (string | undefined)[];
  /** Ends in `**`. */
  readonly rest: boolean;
  /** The rows of this route for each kind of request. */
  readonly rows: Record<Asked, Row<T>[]>;
  /** Methods of the rows that are written for this route, not forms of other rows. */
  readonly written: Set<Method | 'ANY'>;
}

/**
 * Interns every literal and groups the rows by shape; then adds the forms that rows have by the rules. Where a row is
 * written for the shape and method of another one's form, the list itself says what holds there. Two steps a row.
 */
export function* routesOf<T>(
  rows: readonly PathTableRow<T>[],
  interner: SegmentInterner,
  { itemForms = true, versionSegments = true }: Pick<PathRules, 'itemForms' | 'versionSegments'>,
): Steps<Iterable<Route<T>>> {
  const routes = new Map<string, Route<T>>();
  const add = (row: Row<T>, method: Method | 'ANY') => {
    const ids = row.segments.map((part) => ('literal' in part ? interner.intern(part.literal) : undefined));
    const shape = [...ids.map((id) => id ?? '{}'), row.rest].join('/');
    const route = routes.get(shape) ?? { ids, rest: row.rest, rows: noRows<T>(), written: new Set() };
    routes.set(shape, route);
    if (row.form === undefined) route.written.add(method);
    else if (route.written.has(method) || route.written.has('ANY')) return;
    for (const asked of askedBy(method)) {
      if (route.rows[asked].length === 0) route.rows[asked] = [row];
      else route.rows[asked].push(row);
    }
  };
  const all: { readonly method: Method | 'ANY'; readonly written: Row<T> }[] = [];
  for (const [index, { method, template: text, data }] of rows.entries()) {
    const template = parsePathTemplate(text);
    if (isTemplateProblem(template)) throw new Error(`path "${text}": ${template.problem}`);
    const { segments, rest } = template;
    const isOneType = segments.length === 1;
    const written: Row<T> = { index, segments, rest, form: undefined, isOneType, data };
    add(written, method);
    all.push({ method, written });
    yield;
  }
  for (const { method, written } of all) {
    const bare = versionSegments ? withoutVersion(written) : undefined;
    for (const form of [bare, itemForms && itemForm(written), itemForms && bare && itemForm(bare)]) {
      if (form) add(form, method);
    }
    yield;
  }
  return routes.values();
}

/** The id that a shop may ignore where its resource ends in a name: `/carts` is `/carts/{}`, too. */
function itemForm<T>(row: Row<T>): Row<T> | undefined {
  const last = row.segments.at(-1);
  if (row.rest || last === undefined || 'name' in last) return undefined;
  return { ...row, segments: [...row.segments, { name: '' }], form: 'item-form' };
}

/** A form without version only makes sense if it still has a literal. */
function withoutVersion<T>(row: Row<T>): Row<T> | undefined {
  const [first, ...segments] = row.segments;
  if (first === undefined || !('literal' in first) || !isVersionSegment(first.literal)) return undefined;
  if (!segments.some((part) => 'literal' in part)) return undefined;
  return { ...row, segments, form: 'without-version', isOneType: segments.length === 1 };
}

function askedBy(method: Method | 'ANY'): Asked[] {
  if (method === 'ANY') return [...methods.filter((each) => each !== 'OPTIONS'), 'form'];
  if (method === 'OPTIONS') return ['OPTIONS'];
  if (isExtensionMethod(method)) return ['form'];
  return method === 'GET' ? ['GET', 'HEAD', 'form'] : [method, 'form'];
}

function noRows<T>(): Record<Asked, Row<T>[]> {
  // One list for all templates without parameters: eight lists for each of 60,000 rows would be half a million.
  const none: Row<T>[] = [];
  return {
    GET: none,
    HEAD: none,
    POST: none,
    PUT: none,
    PATCH: none,
    DELETE: none,
    OPTIONS: none,
    form: none,
  };
}

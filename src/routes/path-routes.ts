import type { Method, UsualMethod } from '../http/canonical-request.ts';
import type { SegmentInterner } from '../http/path-folding.ts';
import { isVersionSegment } from '../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate } from '../http/path-template.ts';
import type { Steps } from '../lib/slices.ts';
import { PathIndex, type Row } from './path-index.ts';
import type { PathRules } from './path-interpretations.ts';

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

/** Rows name only the usual methods. A request with another method matches the rows of every method. */
export const askedOf: Readonly<Record<Method, Asked>> = {
  ...{ GET: 'GET', HEAD: 'HEAD', POST: 'POST', PUT: 'PUT', PATCH: 'PATCH', DELETE: 'DELETE' },
  ...{ OPTIONS: 'OPTIONS', SEARCH: 'form', QUERY: 'form', PROPFIND: 'form', REPORT: 'form' },
};

/**
 * Interns every literal and indexes the rows by route; then adds the forms that rows have by the rules. An explicit row wins
 * over a form of another row with the same route and method. Two steps a row.
 */
export function* indexRows<T>(
  rows: readonly PathTableRow<T>[],
  interner: SegmentInterner,
  { itemForms = true, versionSegments = true }: Pick<PathRules, 'itemForms' | 'versionSegments'>,
  everyReading: boolean,
): Steps<PathIndex<T>> {
  const index = new PathIndex<T>(everyReading);
  /** The methods of the explicit rows of each route, a bit for each. */
  const written = new Map<string, number>();
  const idsOf = ({ template }: Row<T>) =>
    segmentsOf(template).map((part) => (isParameter(part) ? undefined : interner.intern(part)));
  const all: Row<T>[] = [];
  for (const [place, { method, template: text, data }] of rows.entries()) {
    const parsed = parsePathTemplate(text);
    if (isTemplateProblem(parsed)) throw new Error(`path "${text}": ${parsed.problem}`);
    // The same string again, where it is already canonical.
    const template = parsed.text === text ? text : parsed.text;
    const isOneType = parsed.segments.length === 1;
    const row: Row<T> = {
      index: place,
      method,
      template,
      rest: parsed.rest,
      form: undefined,
      isOneType,
      data,
    };
    all.push(row);
    const ids = idsOf(row);
    index.add(row, ids);
    const route = routeOf(row, ids);
    written.set(route, (written.get(route) ?? 0) | bitOf(method));
    yield;
  }
  for (const row of all) {
    const bare = versionSegments ? withoutVersion(row) : undefined;
    for (const form of [bare, itemForms && itemForm(row), itemForms && bare && itemForm(bare)]) {
      if (!form) continue;
      const ids = idsOf(form);
      const bits = bitOf(form.method) | bitOf('ANY');
      if (((written.get(routeOf(form, ids)) ?? 0) & bits) === 0) index.add(form, ids);
    }
    yield;
  }
  return index;
}

/** Equal for rows that differ by method and parameter names only. */
function routeOf({ rest }: Row<unknown>, ids: readonly (string | undefined)[]): string {
  return `${rest} ${ids.join('/')}`;
}

function bitOf(method: Method | 'ANY'): number {
  return method === 'ANY' ? 1 : 2 << allMethods.indexOf(method);
}

const allMethods = Object.keys(askedOf);

/** Segments of a row's template, without a last `**`. */
export function segmentsOf(template: string): string[] {
  const segments = template === '/' ? [] : template.slice(1).split('/');
  if (segments.at(-1) === '**') segments.pop();
  return segments;
}

export function isParameter(segment: string): boolean {
  return segment.startsWith('{');
}

/** The id that a shop may ignore where its resource ends in a name: `/carts` is `/carts/{}`, too. */
function itemForm<T>(row: Row<T>): Row<T> | undefined {
  if (row.rest || row.template === '/' || row.template.endsWith('}')) return undefined;
  return { ...row, template: `${row.template}/{}`, form: 'item-form' };
}

/** A form without version only makes sense if it still has a literal. */
function withoutVersion<T>(row: Row<T>): Row<T> | undefined {
  const [first, ...segments] = segmentsOf(row.template);
  if (first === undefined || isParameter(first) || !isVersionSegment(first)) return undefined;
  if (segments.every(isParameter)) return undefined;
  const template = row.template.slice(first.length + 1);
  return { ...row, template, form: 'without-version', isOneType: segments.length === 1 };
}

/** Whether requests of this kind meet rows of this method. */
export function isAskedBy(method: Method | 'ANY', asked: Asked): boolean {
  if (method === 'OPTIONS' || asked === 'OPTIONS') return method === asked;
  if (method === 'ANY' || asked === 'form') return true;
  return method === asked || (method === 'GET' && asked === 'HEAD');
}

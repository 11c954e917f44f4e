import { finish, type Steps } from '../event-loop/slices.ts';
import type { CanonicalRequest, Method } from './canonical-request.ts';
import { createVocabulary, foldSegment, type Vocabulary } from './path-folding.ts';
import { indexRoutes, type Meet } from './path-index.ts';
import { type IgnoredPrefix, isForeign, type PathReading, readPath } from './path-reading.ts';
import { type Row, routesOf } from './path-routes.ts';
import { isTemplateProblem, parsePathTemplate } from './path-template.ts';

/** A row that a request meets. */
export interface PathMatch<T> {
  readonly data: T;
  /** Values of the template's `{name}`s, as they stand in the canonical path (not folded, not decoded). */
  readonly params: Readonly<Record<string, string>>;
  /**
   * Met by the plain reading of the canonical path: as many segments as the template (or more, under `**`), literals
   * equal octet for octet, no parameter empty. `false` when only a lenient reading meets it.
   */
  readonly exact: boolean;
}

/** What of a request is matched. */
export type PathTableRequest = Pick<
  CanonicalRequest,
  'method' | 'segments' | 'alternativeSegments' | 'isFormPost'
>;

/** Rows of METHOD and path template, with the shop's own lenient reading of paths: see `buildPathTable`. */
export interface PathTable<T> {
  /** Every row that any reading of the request meets, exact ones first; the caller lets the strictest win. */
  match(request: PathTableRequest): readonly PathMatch<T>[];
}

export interface PathTableRow<T> {
  readonly method: Method | 'ANY';
  /** Path of literals, `{name}`s and perhaps a last `**`. */
  readonly template: string;
  readonly data: T;
}

export interface PathTableOptions {
  /** Prefixes that the shop strips before it looks at a path, such as `/index.php`; literals only. */
  readonly ignoredPrefixes: readonly string[];
}

/**
 * Compiles rows into one table whose look-ups cost the same for ten rows and for ten thousand.
 *
 * Matching fails closed: a row is met when any reading that some upstream may make of the path meets it.
 * - Literals match whatever their case and escapes; `;params` and dots and spaces at the end of a segment are ignored.
 * - Empty segments are taken as kept, dropped, and runs of them as one; at the end of the path as none and as an empty
 *   id. An empty segment matches a parameter.
 * - The path is read with and without each ignored prefix, also where it is glued to the next segment, and with each
 *   `%2F` both as it stands and as a slash.
 * - A row of two or more segments also matches as the end of any longer path. A row of one segment does so only where
 *   a resource type stands, at an even position (from 0) of a reading: `/a/1/carts` meets `/carts`, `/a/carts`, where
 *   `carts` is an id, does not. Under `**` one more segment counts as the row's.
 * - A path of pairs of type and id is also read as each pair followed by the last one, since the shop takes the last
 *   pair for the resource and any earlier one for its parent: `/carts/1/x/y/items/2` is `/carts/1/items/2`.
 *
 * HEAD meets rows of GET too. `ANY` is every method but OPTIONS, which is never authenticated and meets only rows of
 * its own name. A form POST meets the rows of every method but OPTIONS.
 * @throws {Error} when a template or an ignored prefix is malformed; check them with `parsePathTemplate` first.
 */
export function buildPathTable<T>(rows: readonly PathTableRow<T>[], options: PathTableOptions): PathTable<T> {
  return finish(buildPathTableInSteps(rows, options));
}

/** The same in small steps, for a table that is built while others are served. */
export function* buildPathTableInSteps<T>(
  rows: readonly PathTableRow<T>[],
  options: PathTableOptions,
): Steps<PathTable<T>> {
  const vocabulary = createVocabulary();
  const routes = yield* routesOf(rows, vocabulary);
  const index = yield* indexRoutes(routes);
  const prefixes = options.ignoredPrefixes.map((prefix) => parsePrefix(prefix, vocabulary));
  return {
    match(request) {
      if (!index.isMetByAnything && isForeign(request, vocabulary, prefixes)) return none;
      const readings = readPath(request, vocabulary, prefixes);
      const asked = request.isFormPost && request.method === 'POST' ? 'form' : request.method;
      const met = new Map<number, PathMatch<T>>();
      const meet: Meet<T> = (route, reading, start) => {
        for (const row of route.rows[asked]) {
          if (met.has(row.index)) continue;
          const match = matchOf(row, reading, start);
          met.set(row.index, isRoot(row, request) ? { ...match, exact: true } : match);
        }
      };
      index.lookUp(readings, meet);
      return inOrder(met);
    },
  };
}

const none: readonly never[] = [];

function matchOf<T>(row: Row<T>, reading: PathReading, start: number): PathMatch<T> {
  const params: Record<string, string> = {};
  const { segments, origins } = reading;
  const parts = row.template.segments;
  let exact = reading.isPlain && start === 0 && (row.template.rest || parts.length === segments.length);
  for (let i = 0; i < parts.length; i += 1) {
    const part = parts[i] as (typeof parts)[number];
    const segment = segments[origins?.[start + i] ?? start + i] ?? '';
    if ('name' in part) params[part.name] = segment;
    if ('name' in part ? segment === '' : segment !== part.literal) exact = false;
  }
  return { data: row.data, params, exact };
}

/** `/` is one empty segment as it stands, and no segment in a template. */
function isRoot({ template }: Row<unknown>, { segments }: PathTableRequest): boolean {
  return template.text === '/' && segments.length === 1 && segments[0] === '';
}

function inOrder<T>(met: ReadonlyMap<number, PathMatch<T>>): readonly PathMatch<T>[] {
  if (met.size < 2) return [...met.values()];
  const entries = [...met].sort(([a, one], [b, other]) => Number(other.exact) - Number(one.exact) || a - b);
  return entries.map(([, match]) => match);
}

function parsePrefix(text: string, vocabulary: Vocabulary): IgnoredPrefix {
  const template = parsePathTemplate(text);
  if (isTemplateProblem(template)) throw new Error(`ignored prefix "${text}": ${template.problem}`);
  const literals = template.segments.map((segment) => ('literal' in segment ? segment.literal : ''));
  const last = literals.at(-1);
  if (template.rest || last === undefined || literals.includes('')) {
    throw new Error(`ignored prefix "${text}": one or more literals are needed, nothing else`);
  }
  return { words: literals.map((literal) => vocabulary.learn(literal)), lastText: foldSegment(last) };
}

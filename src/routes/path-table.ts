import type { CanonicalRequest } from '../http/canonical-request.ts';
import { createSegmentInterner } from '../http/path-folding.ts';
import { finish, type Steps } from '../lib/slices.ts';
import type { Meet, Row, RowForm } from './path-index.ts';
import {
  type PathInterpretation,
  PathInterpreter,
  type PathRules,
  type PathStep,
} from './path-interpretations.ts';
import { askedOf, indexRows, isAskedBy, isParameter, type PathTableRow, segmentsOf } from './path-routes.ts';

export type { PathRules } from './path-interpretations.ts';
export type { PathTableRow } from './path-routes.ts';

/**
 * What leads from the canonical path to a row, one part of an interpretation: steps that an upstream may take, forms of the row,
 * another spelling of a literal, an empty segment where an id belongs, the end of a longer path.
 */
export type InterpretationStep =
  | PathStep
  | RowForm
  | 'spelling'
  | 'empty-id'
  | 'longer-path'
  /** The method is POST, which the shop may take for the row's method. */
  | 'method-override';

/** A row that matches a request. */
export interface PathMatch<T> {
  readonly data: T;
  /** Values of the template's `{name}`s, as they stand in the canonical path (not folded, not decoded). */
  readonly params: Readonly<Record<string, string>>;
  /**
   * Met by the plain interpretation of the canonical path: as many segments as the template (or more, under `**`), literals
   * equal octet for octet, no parameter empty. `false` when only a lenient interpretation meets it.
   */
  readonly exact: boolean;
  /** The interpretation that met it, the plainest one; empty where it is exact. */
  readonly interpretation: readonly InterpretationStep[];
}

/** The parts of a request that are matched. */
export type PathTableRequest = Pick<
  CanonicalRequest,
  'method' | 'segments' | 'alternativeSegments' | 'isFormPost'
>;

/** Rows of METHOD and path template, with the shop's own lenient interpretation of paths: see `buildPathTable`. */
export interface PathTable<T> {
  /** Every row that any interpretation of the request meets, exact ones first. `perSteps`: once for each kind of interpretation. */
  match(request: PathTableRequest, perSteps?: boolean): readonly PathMatch<T>[];
}

/**
 * Compiles rows into one table whose look-ups cost the same for ten rows and for ten thousand.
 *
 * Matching fails closed: a row is met when any interpretation that some upstream may make of the path meets it.
 * - Literals match whatever their case and escapes; `;params` and dots and spaces at the end of a segment are ignored.
 * - Empty segments are taken as kept, dropped, and runs of them as one; at the end of the path as none and as an empty
 *   id. An empty segment matches a parameter.
 * - The path is read with and without each ignored prefix, also where it is glued to the next segment, with and without
 *   a version in front and a format suffix at its end, and with each `%2F` both as it stands and as a slash.
 * - A row that ends in a name also matches with one id after it, and a row with a version in front without that version; but
 *   where a row is written for that very path and method, it alone says what holds there.
 * - Unless `lastPair` is off: a row of two or more segments also matches as the end of any longer path. A row of one segment does so only where
 *   a resource type stands, at an even position (from 0) of an interpretation: `/a/1/carts` meets `/carts`, `/a/carts`, where
 *   `carts` is an id, does not. Under `**` one more segment counts as the row's.
 * - A path of pairs of type and id is also read as each pair followed by the last one, since the shop takes the last
 *   pair for the resource and any earlier one for its parent: `/carts/1/x/y/items/2` is `/carts/1/items/2`.
 *
 * HEAD meets rows of GET too. `ANY` is every method but OPTIONS, which is never authenticated and meets only rows of
 * its own name. A form POST, and a method that no row can be written for, meet the rows of every method but OPTIONS.
 * @throws {Error} when a template or an ignored prefix is malformed; check them with `parsePathTemplate` first.
 */
export function buildPathTable<T>(rows: readonly PathTableRow<T>[], rules: PathRules): PathTable<T> {
  return finish(buildPathTableInSteps(rows, rules));
}

const noReadings = () => false;

/**
 * The same in small steps, for a table that is built while others are served. `needsReadings`: a row is met once for each
 * different reading of its parameters.
 */
export function* buildPathTableInSteps<T>(
  rows: readonly PathTableRow<T>[],
  rules: PathRules,
  needsReadings: (data: T) => boolean = noReadings,
): Steps<PathTable<T>> {
  const interner = createSegmentInterner();
  const index = yield* indexRows(
    rows,
    interner,
    rules,
    rows.some(({ data }) => needsReadings(data)),
  );
  const interpreter = new PathInterpreter(rules, interner);
  const methods = [...index.methods];
  const asks = new Set(
    Object.values(askedOf).filter((asked) => methods.some((one) => isAskedBy(one, asked))),
  );
  return {
    match(request, perSteps = false) {
      const asked = request.isFormPost ? 'form' : askedOf[request.method];
      if (!asks.has(asked)) return none;
      if (!index.isMetByAnything && interpreter.hasNoKnownSegment(request)) return none;
      let met: Map<number | string, PathMatch<T>> | undefined;
      const meet: Meet<T> = (row, interpretation, start) => {
        const key = perSteps ? `${row.index} ${interpretation.steps}` : row.index;
        const isEach = needsReadings(row.data);
        if (!isAskedBy(row.method, asked) || (!isEach && met?.has(key) === true)) return;
        // A resource type alone is met only where a type stands: paths are pairs of type and id.
        if (row.isOneType && !row.rest && start % 2 === 1) return;
        const match = matchOf(row, interpretation, start, request);
        met ??= new Map();
        met.set(isEach ? `${key} ${Object.values(match.params).join('/')}` : key, match);
      };
      index.lookUp(interpreter.interpret(request), rules.lastPair !== false, meet);
      return met === undefined ? none : inOrder(met);
    },
  };
}

const none: readonly never[] = [];

function matchOf<T>(
  row: Row<T>,
  { segments, steps }: PathInterpretation,
  start: number,
  request: PathTableRequest,
): PathMatch<T> {
  const params: Record<string, string> = {};
  let isSpelled = true;
  let hasEmptyId = false;
  const parts = segmentsOf(row.template);
  for (let i = 0; i < parts.length; i += 1) {
    const part = parts[i] as string;
    const segment = segments[start + i] ?? '';
    if (isParameter(part)) {
      params[part.slice(1, -1)] = segment;
      hasEmptyId ||= segment === '';
    } else isSpelled &&= segment === part;
  }
  const isExact = isSpelled && !hasEmptyId && start === 0 && steps.length === 0 && row.form === undefined;
  if (isExact || isRoot(row, request)) return { data: row.data, params, exact: true, interpretation: none };
  const interpretation: InterpretationStep[] = [...steps];
  if (row.form !== undefined) interpretation.push(row.form);
  if (start > 0) interpretation.push('longer-path');
  if (!isSpelled) interpretation.push('spelling');
  if (hasEmptyId) interpretation.push('empty-id');
  return { data: row.data, params, exact: false, interpretation };
}

/** `/` is one empty segment as it stands, and no segment in a template. */
function isRoot({ template }: Row<unknown>, request: PathTableRequest): boolean {
  return template === '/' && request.segments.join('/') === '';
}

function inOrder<T>(met: ReadonlyMap<number | string, PathMatch<T>>): readonly PathMatch<T>[] {
  if (met.size < 2) return [...met.values()];
  const indexOf = (key: number | string) => Number.parseInt(`${key}`, 10);
  return [...met]
    .sort(([a, one], [b, other]) => Number(other.exact) - Number(one.exact) || indexOf(a) - indexOf(b))
    .map(([, match]) => match);
}

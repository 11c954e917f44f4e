import type { CanonicalRequest, Method } from '../http/canonical-request.ts';
import { createSegmentInterner, openLiterals, type PackedLiterals } from '../http/path-folding.ts';
import { isTemplateProblem, parsePathTemplate } from '../http/path-template.ts';
import {
  anyId,
  isBare,
  isItem,
  isOneType,
  isRest,
  type Meet,
  type PackedIndex,
  PathIndex,
  packIndex,
  type RowEntry,
  rowIndexOf,
} from './path-index.ts';
import {
  type PathInterpretation,
  PathInterpreter,
  type PathRules,
  type PathStep,
  type Prefix,
  parsePrefixes,
} from './path-interpretations.ts';
import {
  askedOf,
  isAskedBy,
  isParameter,
  type PathTableRow,
  partsOf,
  type RowForm,
  routesOf,
  writtenRoute,
} from './path-routes.ts';

export type { PathRules } from './path-interpretations.ts';
export type { PathTableRow } from './path-routes.ts';

/**
 * A part of an interpretation, which leads from the canonical path to a row: a step that an upstream may take, a form of the
 * row, another spelling of a literal, an empty segment as an id, the end of a longer path.
 */
export type InterpretationStep =
  | PathStep
  | RowForm
  | 'spelling'
  | 'empty-id'
  | 'longer-path'
  /** The method is POST, which the shop may take for the row's method. */
  | 'method-override';

export interface PathMatch<T> {
  readonly data: T;
  /** Values of the template's `{name}`s as in the canonical path (not folded, not decoded). */
  readonly params: Readonly<Record<string, string>>;
  /**
   * Met by the plain interpretation of the canonical path: as many segments as the template (or more, under `**`), literals
   * equal octet for octet, no parameter empty. `false` when only a lenient interpretation meets it.
   */
  readonly exact: boolean;
  /** The plainest interpretation that met the row; empty if it is exact. */
  readonly interpretation: readonly InterpretationStep[];
}

export type PathTableRequest = Pick<
  CanonicalRequest,
  'method' | 'segments' | 'alternativeSegments' | 'isFormPost'
>;

/** Rows of METHOD and path template, with the shop's own lenient interpretation of paths: see `buildPathTable`. */
export interface PathTable<T> {
  /** Every row that any interpretation of the request meets, exact ones first. `perSteps`: once for each kind of interpretation. */
  match(request: PathTableRequest, perSteps?: boolean): readonly PathMatch<T>[];
  /** Indexes of the rows written with this route, whatever their methods and parameter names. */
  indexesOf(template: string): readonly number[];
}

/**
 * Compiles rows into one table whose look-ups cost the same for ten rows and for ten thousand.
 *
 * Matching fails closed: a row is met when any interpretation that some upstream may make of the path meets it.
 * - Literals match whatever their case and escapes; `;params` and dots and spaces at the end of a segment are ignored.
 * - Empty segments are tried as kept, as dropped, and with each run as one; at the end of the path as none and as an empty
 *   id. An empty segment matches a parameter.
 * - The path is read with and without each ignored prefix, also where it is glued to the next segment, with and without a
 *   version in front and a format suffix at its end, and with each `%2F` both unchanged and as a slash.
 * - A row that ends in a name also matches with one id after it, and a row with a version in front without that version; but
 *   where a row is written for that very path and method, only it applies.
 * - Unless `lastPair` is off: a row of two or more segments also matches as the end of any longer path. A row of one segment
 *   does so only where a resource type is, at an even position (from 0) of an interpretation: `/a/1/carts` meets
 *   `/carts`; `/a/carts`, where `carts` is an id, does not. A final `**` counts as one more segment of the row.
 * - A path of pairs of type and id is also read as each pair followed by the last one, since the shop takes the last pair for
 *   the resource and any earlier one for its parent: `/carts/1/x/y/items/2` is `/carts/1/items/2`.
 *
 * HEAD meets rows of GET too. `ANY` is every method but OPTIONS, which is never authenticated and meets only rows of its own
 * name. A form POST, and a method that no row can be written for, meet the rows of every method but OPTIONS. `needsReadings`:
 * such a row is met once for each different reading of its parameters; if there are too many, once more without.
 * @throws {Error} when a template or an ignored prefix is malformed; check them with `parsePathTemplate` first.
 */
export function buildPathTable<T>(
  rows: readonly PathTableRow<T>[],
  rules: PathRules,
  needsReadings: (data: T) => boolean = () => false,
): PathTable<T> {
  const canonical = rows.map(({ method, template, data }) => {
    const parsed = parsePathTemplate(template);
    if (isTemplateProblem(parsed)) throw new Error(`path "${template}": ${parsed.problem}`);
    return { method, template: parsed.text, data };
  });
  return openPathTable(
    packPathTable(canonical, rules, ({ data }) => needsReadings(data)),
    (rowIndex) => canonical[rowIndex] as PathTableRow<T>,
  );
}

/** A table without the data of its rows: threads and processes pass it on at the cost of a copy. */
export interface PackedPathTable {
  readonly rules: PathRules;
  readonly prefixes: readonly Prefix[];
  readonly literals: PackedLiterals;
  readonly index: PackedIndex;
  /** Row -> its method, as an index of `methods`. */
  readonly methodOf: Uint8Array;
  readonly methods: readonly (Method | 'ANY')[];
  /** Some route has no literal, so any path may match it. */
  readonly isMetByAnything: boolean;
  /** Row -> 1 if it is reported for each reading of its parameters. */
  readonly readings: Uint8Array;
}

/** Packs rows with canonical templates. @throws {Error} if an ignored prefix is malformed. */
export function packPathTable<Row extends Pick<PathTableRow<unknown>, 'method' | 'template'>>(
  rows: readonly Row[],
  rules: PathRules,
  needsReadings: (row: Row) => boolean = () => false,
): PackedPathTable {
  const interner = createSegmentInterner();
  const routes = routesOf(rows, interner, rules);
  const prefixes = parsePrefixes(rules, interner);
  const methods = [...new Set(rows.map(({ method }) => method))];
  return {
    ...{ rules, prefixes, methods },
    literals: interner.pack(),
    index: packIndex(routes),
    methodOf: Uint8Array.from(rows, ({ method }) => methods.indexOf(method)),
    readings: Uint8Array.from(rows, (row) => Number(needsReadings(row))),
    isMetByAnything: routes.some(({ ids }) => ids.every((id) => id === anyId)),
  };
}

/** `rowOf`: returns the row of an index, with its canonical template. */
export function openPathTable<T>(
  { rules, prefixes, literals, index: packed, methodOf, methods, isMetByAnything, readings }: PackedPathTable,
  rowOf: (rowIndex: number) => Omit<PathTableRow<T>, 'method'>,
): PathTable<T> {
  const index = new PathIndex(packed, readings.includes(1));
  const idOf = openLiterals(literals);
  const interpreter = new PathInterpreter(rules, idOf, prefixes);
  const split = new Map<RowEntry, readonly string[]>();
  const asks = new Set(
    Object.values(askedOf).filter((asked) => methods.some((one) => isAskedBy(one, asked))),
  );
  return {
    match(request, perSteps = false) {
      const asked = request.isFormPost ? 'form' : askedOf[request.method];
      if (!asks.has(asked)) return none;
      if (!isMetByAnything && interpreter.hasNoKnownSegment(request)) return none;
      let met: Map<number | string, MetRow<T>> | undefined;
      let counts: Map<number | string, number> | undefined;
      const meet: Meet = (entry, interpretation, start) => {
        const rowIndex = rowIndexOf(entry);
        const method = methods[methodOf[rowIndex] as number] as Method | 'ANY';
        const key = perSteps ? `${rowIndex} ${interpretation.steps}` : rowIndex;
        const isEach = readings[rowIndex] === 1;
        const count = counts?.get(key) ?? 0;
        if (!isAskedBy(method, asked) || count > maxReadings || (!isEach && met?.has(key) === true)) return;
        // A single resource type matches only at the position of a type: paths are pairs of type and id.
        if ((entry & (isOneType | isRest)) === isOneType && start % 2 === 1) return;
        const row = rowOf(rowIndex);
        const parts = split.get(entry) ?? partsOf(row.template, entry);
        if (split.size < mostSplit && !split.has(entry)) split.set(entry, parts);
        const match = matchOf(row, parts, entry, interpretation, start, request);
        met ??= new Map();
        const reading = isEach ? `${key} ${Object.values(match.params).join('/')}` : key;
        if (met.has(reading)) return;
        if (isEach) counts = (counts ?? new Map()).set(key, count + 1);
        if (count < maxReadings) met.set(reading, { rowIndex, match });
        else met.set(`${key}/`, { rowIndex, match: { ...match, params: {} } });
      };
      index.lookUp(interpreter.interpret(request), rules.lastPair !== false, meet);
      return met === undefined ? none : inOrder(met);
    },
    indexesOf(template) {
      const { parts, flags } = writtenRoute(template);
      const ids = parts.map((part) => (isParameter(part) ? anyId : idOf(part)));
      const entries = index.rowsOf(ids, flags & isRest);
      return entries.filter((entry) => (entry & (isBare | isItem)) === 0).map(rowIndexOf);
    },
  };
}

const none: readonly never[] = [];

interface MetRow<T> {
  readonly rowIndex: number;
  readonly match: PathMatch<T>;
}

/** Maximum number of rows whose templates stay split, which costs more than the rest of a match. */
const mostSplit = 1_000;
/** Maximum number of readings of a row's parameters in one path and by one kind of steps; beyond that it is met without parameters. */
const maxReadings = 4;

function matchOf<T>(
  { template, data }: Omit<PathTableRow<T>, 'method'>,
  parts: readonly string[],
  entry: RowEntry,
  { segments, steps }: PathInterpretation,
  start: number,
  request: PathTableRequest,
): PathMatch<T> {
  const params: Record<string, string> = {};
  let isSpelled = true;
  let hasEmptyId = false;
  for (let i = 0; i < parts.length; i += 1) {
    const part = parts[i] as string;
    const segment = segments[start + i] ?? '';
    if (isParameter(part)) {
      params[part.slice(1, -1)] = segment;
      hasEmptyId ||= segment === '';
    } else isSpelled &&= segment === part;
  }
  const isForm = (entry & (isItem | isBare)) !== 0;
  const isExact = isSpelled && !hasEmptyId && start === 0 && steps.length === 0 && !isForm;
  // Unchanged, `/` is one empty segment; as a template it has no segment.
  if (isExact || (template === '/' && request.segments.join('/') === ''))
    return { data, params, exact: true, interpretation: none };
  const interpretation: InterpretationStep[] = [...steps];
  if (isForm) interpretation.push((entry & isItem) !== 0 ? 'item-form' : 'without-version');
  if (start > 0) interpretation.push('longer-path');
  if (!isSpelled) interpretation.push('spelling');
  if (hasEmptyId) interpretation.push('empty-id');
  return { data, params, exact: false, interpretation };
}

function inOrder<T>(met: ReadonlyMap<number | string, MetRow<T>>): readonly PathMatch<T>[] {
  const rows = [...met.values()];
  if (rows.length > 1)
    rows.sort((a, b) => Number(b.match.exact) - Number(a.match.exact) || a.rowIndex - b.rowIndex);
  return rows.map(({ match }) => match);
}

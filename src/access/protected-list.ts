import { methods, type UsualMethod } from '../http/canonical-request.ts';
import { foldSegment } from '../http/path-folding.ts';
import { isTemplateProblem, type PathTemplate, parsePathTemplate } from '../http/path-template.ts';
import {
  type InterpretationStep,
  openPathTable,
  type PackedPathTable,
  type PathMatch,
  type PathTableRequest,
} from '../routes/path-table.ts';
import type { ClaimCondition, RowConditions } from './claim-conditions.ts';
import { commonLocations, type TokenLocation } from './token-locations.ts';

export type ResourceMethod = Exclude<UsualMethod, 'HEAD' | 'OPTIONS'>;

export interface ProtectedResource {
  /** GET covers HEAD. `ANY`: every method but OPTIONS, which is never authenticated. */
  readonly method: ResourceMethod | 'ANY';
  /** Path of literals, `{name}`s and perhaps a final `**`; literals are spelled as in a canonical path. */
  readonly template: string;
  readonly group: string;
  /** All of them are required; empty: any valid token is enough. */
  readonly scopes: readonly string[];
  /** One of them is required; undefined: none is. */
  readonly anyScopes?: readonly string[] | undefined;
  /** What the claims of the token must say; undefined: nothing. */
  readonly require?: readonly ClaimCondition[] | undefined;
  /** Where the token is expected; undefined: in the field `Authorization`. */
  readonly tokenIn?: readonly TokenLocation[] | undefined;
  /** Refusals are only logged and counted; the request is forwarded. */
  readonly observe: boolean;
  /** `shop`: HTTP Basic and session cookies are forwarded unchecked. Undefined: only a token counts. */
  readonly credentials?: 'shop' | undefined;
  /** A token that is not bound to a key of the client is refused. */
  readonly proof?: 'required' | undefined;
  readonly source: { readonly file: string; readonly line: number; readonly column: number };
}

/** A row with `open: true`: POST needs no token, even if another method of its path does. */
export type OpenRow = Pick<ProtectedResource, 'method' | 'template' | 'group' | 'source'>;

export interface ResourceText {
  readonly method: ProtectedResource['method'];
  readonly path: PathTemplate;
}

/** The row as written in the list, `GET /carts/{cart_id}`: its name for clients and people. */
export function resourceId({ method, template }: Pick<ProtectedResource, 'method' | 'template'>): string {
  return `${method} ${template}`;
}

/** A key that is equal for rows that match the same requests. */
export function routeKey({ method, template }: Pick<ProtectedResource, 'method' | 'template'>): string {
  return `${method} ${shapeOf(template)}`;
}

/** A row's path without the names of its parameters, its literals folded. */
export function shapeOf(template: string): string {
  return template
    .split('/')
    .map((part) => (part.startsWith('{') ? '{}' : encodeURIComponent(foldSegment(part))))
    .join('/');
}

/** Or why the text is not a row, and at which character (from 0). */
export function parseResourceText(text: string): ResourceText | { problem: string; offset: number } {
  const space = text.indexOf(' ');
  const method = space < 0 ? text : text.slice(0, space);
  if (space < 0 || !text.startsWith('/', space + 1)) {
    return { problem: 'a row is a method or ANY, one space, and a path: GET /carts/{cart_id}', offset: 0 };
  }
  const methodFault = methodProblem(method);
  if (methodFault !== undefined) return { problem: methodFault, offset: 0 };
  const path = parsePathTemplate(text.slice(space + 1));
  if (isTemplateProblem(path)) return { problem: path.problem, offset: space + 1 + path.offset };
  return { method: method as ResourceText['method'], path };
}

const known = ['ANY', ...methods.filter((method) => method !== 'HEAD' && method !== 'OPTIONS')];

function methodProblem(method: string): string | undefined {
  if (known.includes(method)) return undefined;
  const upper = method.toUpperCase();
  if (upper === 'OPTIONS') return 'OPTIONS can never match: it is never authenticated';
  if (upper === 'HEAD') return 'HEAD is matched as GET: write GET';
  if (known.includes(upper)) return `methods are written in upper case: ${upper}`;
  return `an unknown method: a row begins with one of ${known.join(' ')}`;
}

/** A list that may take effect: at least one row, each of which can match. */
export interface ProtectedResources {
  readonly file: string;
  readonly rows: readonly ProtectedResource[];
  readonly open?: readonly OpenRow[];
}

/** Rows in the order of the file: an array, or rows that are created on access. */
export interface RowSequence<Row = ProtectedResource> extends Iterable<Row> {
  readonly length: number;
  at(index: number): Row | undefined;
}

export interface Requirement {
  /** The deciding row: rows that enforce before rows that observe, then exact ones, then the earliest in the list. */
  readonly row: ProtectedResource;
  readonly route: string;
  /** Every row that the request matches: exact ones first, then in the order of the list. */
  readonly rows: readonly ProtectedResource[];
  readonly scopes: readonly string[];
  /** One of each list is required. Undefined: none is. */
  readonly anyScopes?: readonly (readonly string[])[] | undefined;
  /** Of every row that enforces; of all rows if all observe. Undefined: none. */
  readonly conditions?: readonly RowConditions[] | undefined;
  /** Of rows that observe, if another row enforces: unmet ones are counted, not refused. */
  readonly observedConditions?: readonly RowConditions[] | undefined;
  /** What `tokenIn` of all rows has in common; undefined: the field `Authorization`. */
  readonly tokenIn?: readonly TokenLocation[] | undefined;
  /** Set only if every matching row sets it. */
  readonly credentials?: 'shop' | undefined;
  /** Set if any matching row sets it. */
  readonly proof?: 'required' | undefined;
  /** Only when every row observes. */
  readonly observe: boolean;
}

interface MatchedRow {
  readonly row: ProtectedResource;
  readonly exact: boolean;
  /** The interpretation of the request that matches the row; empty if exact. */
  readonly interpretation: readonly InterpretationStep[];
}

/** The compiled protected list. Immutable, so that a request ends under the list with which it began. */
export interface ProtectedList {
  readonly rows: RowSequence;
  /** What rows require: each combination at least once. */
  readonly terms: readonly Pick<
    ProtectedResource,
    'scopes' | 'anyScopes' | 'tokenIn' | 'proof' | 'observe'
  >[];
  readonly open: RowSequence<OpenRow>;
  /** Names of query parameters that some row takes a token from. */
  readonly tokenParameters: readonly string[];
  /** Undefined: no row matches any interpretation of the request, so it needs no token. Deterministic. */
  match(request: PathTableRequest): Requirement | undefined;
  /** Each matching row, exact ones first; for explanations. */
  matchRows(request: PathTableRequest): readonly MatchedRow[];
  /** Indexes of the rows of one route, whatever their methods and the names of its parameters. */
  indexesOf(template: string): readonly number[];
  /** The open row that matches a POST by its exact path. */
  openedBy(request: PathTableRequest): OpenRow | undefined;
}

export type Rows = Pick<ProtectedResources, 'rows' | 'open'>;

type Met = PathMatch<ProtectedResource>;
type OpenMet = PathMatch<OpenRow>;

export function rowOf<Row extends OpenRow>(rows: RowSequence<Row>) {
  return (index: number) => {
    const row = rows.at(index) as Row;
    return { method: row.method, template: row.template, data: row };
  };
}

/** Whether a condition depends on the path, so that each interpretation of the path must be kept. */
export function readsParameters({ require = [] }: Pick<ProtectedResource, 'require'>): boolean {
  return require.some(({ parameter }) => parameter !== undefined);
}

/** A list made of compiled tables. The strictest requirements of all rows that match a request count. */
export function tableOfPacked(
  parts: Pick<ProtectedList, 'rows' | 'open' | 'terms'>,
  packedTable: PackedPathTable,
  packedOpenTable: PackedPathTable,
): ProtectedList {
  const table = openPathTable(packedTable, rowOf(parts.rows));
  const openTable = openPathTable(packedOpenTable, rowOf(parts.open));
  const meetOpen = (request: PathTableRequest) => {
    const all = openTable.match({ ...request, isFormPost: false }, true);
    return all.some(({ exact }) => exact) ? all.filter((one) => one.interpretation.every(isCut)) : [];
  };
  const meetAs = (request: PathTableRequest) =>
    metByPost(table.match({ ...request, isFormPost: true }, true), request, meetOpen(request));
  const meet = (request: PathTableRequest): readonly Met[] => {
    if (request.method !== 'POST') return table.match(request);
    const { alternativeSegments: segments, ...asItStands } = request;
    // Check both forms apart: a POST row that matches one is no exception for the other.
    const decoded = segments === undefined ? [] : meetAs({ ...asItStands, segments }).map(asDecoded);
    return [...meetAs(asItStands), ...decoded];
  };
  return {
    ...parts,
    tokenParameters: parametersOf(parts.terms),
    openedBy: (request) => meetOpen(request)[0]?.data,
    indexesOf: table.indexesOf,
    match: (request) => strictest(meet(request)),
    matchRows: (request) =>
      onceEach(meet(request)).map(({ data: row, exact, interpretation }) =>
        request.method !== 'POST' || isOfPost(row)
          ? { row, exact, interpretation }
          : { row, exact: false, interpretation: [...interpretation, 'method-override'] },
      ),
  };
}

function isOfPost({ method }: ProtectedResource): boolean {
  return method === 'POST' || method === 'ANY';
}

/**
 * The rows that count for a POST, which can override its method in ways that cannot all be known. So a form also matches the
 * rows of all methods, another POST without a row of its own those of PATCH, PUT and DELETE. An open row exempts both.
 */
function metByPost(all: readonly Met[], { isFormPost }: PathTableRequest, open: readonly OpenMet[]) {
  const own = all.filter(({ data }) => isOfPost(data));
  if (own.length === all.length) return own;
  const named = open.length > 0 ? open : isFormPost ? [] : own.filter(namesThePath);
  const namedReadings = new Set(named.map(readingOf));
  return all.filter(
    (met) =>
      isOfPost(met.data) || (!namedReadings.has(readingOf(met)) && (isFormPost || met.data.method !== 'GET')),
  );
}

/** The steps of an interpretation that cut off a segment, as one key, since then another segment may be the id. */
const readingOf = ({ interpretation }: OpenMet) => interpretation.filter(isCut).join();
const cuts = new Set<InterpretationStep>(['params', 'empty-segments', 'prefix', 'version', 'format-suffix']);
const isCut = (step: InterpretationStep) => cuts.has(step);
const asDecoded = (met: Met): Met => ({
  ...met,
  exact: false,
  interpretation: ['encoded-slash', ...met.interpretation],
});

/** Whether a row enforces, and was written for this path, not derived from a shorter one. */
function namesThePath({ data, interpretation }: Met): boolean {
  return !data.observe && !interpretation.some((step) => derived.has(step));
}

const derived: ReadonlySet<InterpretationStep> = new Set(['item-form', 'longer-path', 'last-pair']);

/** The first match of each row: a row matches once per relevant interpretation. */
function onceEach(met: readonly Met[]): readonly Met[] {
  return met.filter(({ data }, i) => met.findIndex((one) => one.data === data) === i);
}

function strictest(met: readonly Met[]): Requirement | undefined {
  const first = met[0]?.data;
  if (first === undefined) return undefined;
  // Nearly every request matches one row or none.
  const rows = met.length === 1 ? [first] : [...new Set(met.map(({ data }) => data))];
  const deciding = rows.find(({ observe }) => !observe) ?? first;
  const scopes = rows.length === 1 ? first.scopes : [...new Set(rows.flatMap((row) => row.scopes))];
  const plain: Requirement = {
    row: deciding,
    route: deciding.template,
    rows,
    scopes,
    tokenIn: rows.map((row) => row.tokenIn).reduce(commonLocations),
    credentials: rows.every((row) => row.credentials === 'shop') ? 'shop' : undefined,
    proof: rows.some((row) => row.proof === 'required') ? 'required' : undefined,
    observe: deciding.observe,
  };
  return rows.some(({ require, anyScopes }) => require || anyScopes)
    ? { ...plain, ...claimsOf(met, deciding) }
    : plain;
}

/** What the rows require of the claims of a token. If any row enforces, conditions of rows that observe are only counted. */
function claimsOf(
  met: readonly Met[],
  deciding: ProtectedResource,
): Pick<Requirement, 'anyScopes' | 'conditions' | 'observedConditions'> {
  const conditionsOf = (all: readonly Met[]) =>
    all.flatMap(({ data: { require: conditions }, params }) => (conditions ? [{ conditions, params }] : []));
  return {
    anyScopes: met.flatMap(({ data }) => (data.anyScopes ? [data.anyScopes] : [])),
    conditions: conditionsOf(met.filter(({ data }) => data.observe === deciding.observe)),
    observedConditions: conditionsOf(met.filter(({ data }) => data.observe !== deciding.observe)),
  };
}

function parametersOf(terms: ProtectedList['terms']): readonly string[] {
  const names = new Set<string>();
  for (const { tokenIn = [] } of terms)
    for (const one of tokenIn) if (one.startsWith('query:')) names.add(one.slice('query:'.length));
  return [...names];
}

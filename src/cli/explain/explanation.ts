import { identityFieldNames } from '../../access/identity-fields.ts';
import { type ProtectedList, type Requirement, resourceId } from '../../access/protected-list.ts';
import type { TokenInspection } from '../../access/token-inspection.ts';
import {
  headerAlone,
  type PresentedToken,
  readPresentedToken,
  type TokenPlace,
} from '../../access/token-places.ts';
import type { FilterDefinition } from '../../app/filter-definition.ts';
import { compileRules, largestBody } from '../../app/filter-definition.ts';
import { filterDefinitions } from '../../app/filters.ts';
import { upstreamAddress } from '../../app/upstream.ts';
import { takesOpaqueTokens } from '../../config/issuers.ts';
import type { Config, PartialConfig } from '../../config/schema.ts';
import { type CanonicalRequest, requestTarget } from '../../http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../../http/canonicalise-request.ts';
import type { FieldList } from '../../http/field-list.ts';
import type { InterpretationStep } from '../../http/path-table.ts';
import {
  buildRejections,
  isRejection,
  type Rejection,
  type RejectionName,
  type Rejections,
} from '../../http/rejection.ts';
import type { FilterDescription, Matcher } from '../../proxy/filter.ts';
import { type ForwardPlan, knownRefusal, type PlannedFilter, plan } from '../../proxy/plan.ts';
import type { RouteLimits } from '../../proxy/route-limits.ts';
import { explainMiss } from './nearest-rows.ts';

export interface AskedRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  /** Further fields, flat. */
  readonly fields?: FieldList | undefined;
  readonly body?: string | undefined;
  readonly version?: '1.0' | '1.1' | undefined;
  /** Fields and body are all that there are, and what they decide is decided; otherwise they are not known. */
  readonly isWhole?: boolean | undefined;
}

/** A refusal as the client sees it. */
export interface Refusal {
  readonly rejection: RejectionName;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** A word that says more, for the log. */
  readonly reason?: string;
  /** Where its cause and its cure are described. */
  readonly see: string;
}

/**
 * What would happen to a request, step by step: the answer of `explain --json`. Keys are only ever added. What does
 * not apply is null or empty, never absent.
 */
export interface Explanation {
  readonly request: { readonly method: string; readonly target: string; readonly host: string };
  /** `refused`: malformed; `own-endpoint`: answered by shopward; `protected` and `open`: forwarded. */
  readonly verdict: 'refused' | 'own-endpoint' | 'protected' | 'open';
  readonly canonicalPath: string | null;
  readonly refusal: Refusal | null;
  /** Name of the filter that answers. */
  readonly ownEndpoint: string | null;
  readonly token: {
    readonly needed: boolean;
    /** All of them are required. */
    readonly scopes: readonly string[];
    /** Where it stands. */
    readonly in: readonly TokenPlace[];
    /** Refusals are only logged and counted: the proxy, or every row that is met, is in observe mode. */
    readonly observed: boolean;
    readonly missing: Refusal | null;
    readonly invalid: Refusal | null;
    /** What the proxy's verifier says of the request's own token; null: there is none, or it was not asked. */
    readonly inspection: TokenInspection | null;
  };
  /** What observe mode lets pass of a request that is known whole. */
  readonly observed: Refusal | null;
  readonly rows: readonly ExplainedRow[];
  /** Why no row is met. */
  readonly whyNot: readonly string[];
  /** Every filter that has a say in it, in their order. */
  readonly filters: readonly (FilterDescription & { readonly name: string; readonly found?: string })[];
  /** What `filters` says of entity tags. */
  readonly entityTags: EntityTagExplanation | null;
  /** What it may do to refresh tokens: of `issue`, `exchange` and `revoke` several, where one path does. */
  readonly refreshTokens: readonly unknown[];
  /** What it may take, where `limits.routes` says something of any request; bytes and milliseconds. */
  readonly limits: RouteLimits | null;
  /** Null: nothing that passes the checks above would be forwarded either. */
  readonly forward: { readonly upstream: string; readonly method: string; readonly target: string } | null;
}

interface EntityTagExplanation {
  readonly rule: string;
  /** Null where the path may mean several. */
  readonly resource: Readonly<Record<string, unknown>> | null;
  readonly text: string;
}

export interface ExplainedRow {
  readonly row: string;
  readonly group: string;
  readonly file: string;
  readonly line: number;
  readonly scopes: readonly string[];
  readonly observe: boolean;
  /** False: only a lenient interpretation of the path meets it, such as another case or an extra slash. */
  readonly exact: boolean;
  /** Which interpretation that is, step by step; empty where the path as it stands meets it. */
  readonly reading: readonly InterpretationStep[];
  /** The row that log and metrics name. */
  readonly decides: boolean;
}

function emptyExplanation({ method, target, host }: AskedRequest): Explanation {
  return {
    request: { method, target, host },
    verdict: 'open',
    canonicalPath: null,
    refusal: null,
    ownEndpoint: null,
    token: noToken,
    observed: null,
    rows: [],
    whyNot: [],
    filters: [],
    entityTags: null,
    refreshTokens: [],
    limits: null,
    forward: null,
  };
}

const noToken = {
  ...{ needed: false, scopes: [], in: [], observed: false },
  ...{ missing: null, invalid: null, inspection: null },
} as const;

/** Pure: the proxy's own canonical request and its own plan, without a request being made. */
export function explainRequest(
  asked: AskedRequest,
  config: Config,
  list: ProtectedList,
  definitions: readonly FilterDefinition[] = filterDefinitions,
): Explanation {
  const rejections = buildRejections(config.rejections);
  const nothing = emptyExplanation(asked);
  const request = canonicaliseAsked(asked, config);
  if (isRejection(request))
    return { ...nothing, verdict: 'refused', refusal: refusalOf(request, rejections) };
  const canonicalPath = request.path;
  const planned = plan(request, compileRules(config, list, definitions));
  if (isRejection(planned)) {
    return { ...nothing, verdict: 'refused', canonicalPath, refusal: refusalOf(planned, rejections) };
  }
  const isOpen = !('endpoint' in planned) && planned.token === 'none';
  const describe = ({ filter, match }: PlannedFilter<Matcher>) => {
    const name = (rejection: RejectionName) =>
      `${rejections[rejection].status} code ${rejections[rejection].code}`;
    const { whenOpen, ...description } = filter.describe(match, request, name);
    const text = isOpen ? (whenOpen ?? description.text) : description.text;
    return { name: filter.name, ...description, text };
  };
  if ('endpoint' in planned) {
    const filter = describe(planned.endpoint);
    return {
      ...nothing,
      verdict: 'own-endpoint',
      canonicalPath,
      ownEndpoint: filter.name,
      filters: [filter],
    };
  }
  const foreseen = asked.isWhole ? foresee(planned, request, config, asked.body) : noForesight;
  const filters = planned.filters.map((one) => {
    const found = foreseen.found.get(one.filter.name);
    return found === undefined ? describe(one) : { ...describe(one), found };
  });
  const explanation: Explanation = {
    ...nothing,
    canonicalPath,
    limits: planned.limits ?? null,
    ...explainToken(planned, request, list, rejections),
    ...explainFilters(planned, filters, rejections),
    ...explainForward(planned, request, config, rejections),
  };
  const { refusal } = foreseen;
  return refusal === undefined
    ? explanation
    : withRefusal(explanation, refusalOf(refusal, rejections), planned.isObserved);
}

/** The same where this is refused as well; observe mode only notes it. The first refusal counts. */
function withRefusal(explanation: Explanation, refusal: Refusal, isObserved: boolean): Explanation {
  if (explanation.refusal !== null) return explanation;
  return isObserved
    ? { ...explanation, observed: explanation.observed ?? refusal }
    : { ...explanation, refusal, forward: null };
}

interface Foreseen {
  readonly refusal?: Rejection | undefined;
  /** Name of a filter -> what it finds in fields and body. */
  readonly found: ReadonlyMap<string, string>;
}

const noForesight: Foreseen = { found: new Map() };

/** What fields and body decide, in the order of the pipeline: the credentials' form, then the filters. */
function foresee(
  planned: ForwardPlan<Matcher>,
  request: CanonicalRequest,
  config: Config,
  body = '',
): Foreseen {
  const found = new Map<string, string>();
  const credentials = planned.token === 'none' ? undefined : presentedBy(request, planned.token, config);
  let refusal = isRejection(credentials) ? credentials : undefined;
  for (const { filter, match } of planned.filters) {
    const seen = filter.foresee?.(match, request, Buffer.from(body));
    if (typeof seen === 'string') found.set(filter.name, seen);
    else refusal ??= seen;
  }
  return { refusal, found };
}

/** As the token's filter reads it. */
function presentedBy(
  request: CanonicalRequest,
  { tokenIn = headerAlone }: Pick<Requirement, 'tokenIn'>,
  { auth }: Config,
): PresentedToken | Rejection {
  return readPresentedToken(request, tokenIn, auth.cookieOrigins, takesOpaqueTokens(auth));
}

/** The access token of a request that is known whole, where one is needed. */
export function tokenToInspect(
  asked: AskedRequest,
  { token, verdict }: Explanation,
  config: Config,
): string | undefined {
  if (!asked.isWhole || !token.needed || verdict !== 'protected') return undefined;
  const request = canonicaliseAsked(asked, config);
  const presented = isRejection(request) ? request : presentedBy(request, { tokenIn: token.in }, config);
  return isRejection(presented) ? undefined : presented.token;
}

/** The same with what the verifier says of its token: a bad one is refused before any filter is asked. */
export function withInspection(
  explanation: Explanation,
  inspection: TokenInspection,
  config: Config,
): Explanation {
  const { verdict } = inspection;
  const token = { ...explanation.token, inspection };
  if (!isRejection(verdict)) return { ...explanation, token };
  const refusal = refusalOf(verdict, buildRejections(config.rejections));
  const isSoft = explanation.token.observed && verdict.rejection !== 'keys-unavailable';
  return isSoft
    ? { ...explanation, token, observed: refusal }
    : { ...explanation, token, refusal, forward: null };
}

/** What a record of the log says of a request that was refused before it was understood: there is nothing to plan. */
export function explainMalformed(
  asked: AskedRequest,
  record: { readonly rejection: RejectionName; readonly reason?: string | undefined },
  config: Config,
): Explanation {
  const { rejection, reason } = record;
  const refusal = refusalOf(
    reason === undefined ? { rejection } : { rejection, reason },
    buildRejections(config.rejections),
  );
  return { ...emptyExplanation(asked), verdict: 'refused', refusal };
}

function explainFilters(
  { refusal }: ForwardPlan<Matcher>,
  filters: Explanation['filters'],
  rejections: Rejections,
): Pick<Explanation, 'filters' | 'entityTags' | 'refreshTokens'> {
  const detailsOf = (wanted: string) => filters.find(({ name }) => name === wanted)?.details;
  const conflict = refusal && refusalOf(refusal, rejections);
  return {
    filters,
    entityTags: conflict
      ? { rule: conflict.rejection, resource: null, text: conflict.detail }
      : ((detailsOf('entity-tags') ?? null) as EntityTagExplanation | null),
    refreshTokens: (detailsOf('refresh-tokens') ?? []) as readonly unknown[],
  };
}

function explainForward(
  planned: ForwardPlan<Matcher>,
  { method }: CanonicalRequest,
  config: Config,
  rejections: Rejections,
): Pick<Explanation, 'refusal' | 'forward'> {
  const behindToken = knownRefusal(planned);
  if (behindToken !== undefined) return { refusal: refusalOf(behindToken, rejections), forward: null };
  const { origin, path } = upstreamAddress(config.upstream.url);
  const target = path + requestTarget(forwardedOf(planned, config));
  const forward = { upstream: origin, method, target };
  return { refusal: null, forward };
}

/** Without the token, where it stands in the query. */
function forwardedOf({ token, forward }: ForwardPlan<Matcher>, config: Config): CanonicalRequest {
  if (token === 'none' || token.tokenIn === undefined) return forward;
  const presented = presentedBy(forward, token, config);
  return isRejection(presented) ? forward : presented.request;
}

/** As it would come over the wire, from a machine that nobody trusts. */
export function canonicaliseAsked(
  { method, target, host, fields = [], body, version, isWhole = false }: AskedRequest,
  config: Pick<PartialConfig, 'auth' | 'request' | 'limits' | 'upstream'>,
) {
  const rules = buildRequestRules({
    upstreamHost: 'upstream',
    ownFields: identityFieldNames(config.auth?.forward),
    encodedSlash: config.request?.encodedSlash ?? [],
    requestBodyBytes: config.limits === undefined ? 0 : largestBody(config.limits),
    webSocket: config.upstream?.webSocket ?? false,
  });
  const has = (name: string) => fields.some((part, i) => i % 2 === 0 && part.toLowerCase() === name);
  const rawHeaders = [...fields];
  if (!has('host')) rawHeaders.push('Host', host);
  if (body !== undefined && !has('content-length') && !has('transfer-encoding'))
    rawHeaders.push('Content-Length', String(Buffer.byteLength(body)));
  // Without a type a POST counts as a form, and as every method of its path: not what is meant.
  if (!has('content-type') && method !== 'GET' && !isWhole)
    rawHeaders.push('Content-Type', 'application/vnd.api+json');
  const head = {
    method,
    url: target,
    rawHeaders,
    httpVersionMajor: 1,
    httpVersionMinor: version === '1.0' ? 0 : 1,
  };
  return canonicaliseRequest(head, { address: '127.0.0.1', isTls: false, isTrusted: false }, rules);
}

function explainToken(
  { token, isObserved }: ForwardPlan<Matcher>,
  request: CanonicalRequest,
  list: ProtectedList,
  rejections: Rejections,
): Pick<Explanation, 'verdict' | 'token' | 'rows' | 'whyNot'> {
  if (token === 'none') {
    return {
      verdict: 'open',
      token: noToken,
      rows: [],
      whyNot: explainMiss(request, list),
    };
  }
  const interpretations = new Map(list.matchRows(request).map((met) => [met.row, met.interpretation]));
  return {
    verdict: 'protected',
    token: {
      needed: true,
      scopes: token.scopes,
      in: token.tokenIn ?? headerAlone,
      observed: isObserved,
      missing: refusalOf({ rejection: 'access-token-missing' }, rejections),
      invalid: refusalOf({ rejection: 'access-token-invalid' }, rejections),
      inspection: null,
    },
    rows: token.rows.map((row) => ({
      row: resourceId(row),
      group: row.group,
      file: row.source.file,
      line: row.source.line,
      scopes: row.scopes,
      observe: row.observe,
      exact: interpretations.get(row)?.length === 0,
      reading: interpretations.get(row) ?? [],
      decides: row === token.row,
    })),
    whyNot: [],
  };
}

/** What a token may lack has paragraphs of its own. */
const tokenRejections: readonly RejectionName[] = [
  'access-token-invalid',
  'insufficient-scope',
  'keys-unavailable',
];
const tokenReasons: ReadonlySet<string> = new Set([
  ...'too-long scheme other-scheme repeated malformed algorithm critical unknown-key keys signature'.split(
    ' ',
  ),
  ...'no-expiry claims expired not-before issued-in-future no-issue-time too-old issuer audience'.split(' '),
  ...'subject identity-too-long scope inactive other-kind introspection'.split(' '),
]);

/** Where a refusal has its paragraph. */
export function reasonPlace(rejection: RejectionName, reason = ''): string {
  const isOfToken = tokenRejections.includes(rejection) && tokenReasons.has(reason);
  return `docs/reasons.md#${isOfToken ? reason : rejection}`;
}

function refusalOf(
  { rejection, reason }: Pick<Rejection, 'rejection' | 'reason'>,
  rejections: Rejections,
): Refusal {
  const { status, code, detail } = rejections[rejection];
  return {
    rejection,
    status,
    code,
    detail,
    ...(reason !== undefined && { reason }),
    see: reasonPlace(rejection, reason),
  };
}

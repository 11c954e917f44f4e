import { conditionTexts } from '../../access/claim-conditions.ts';
import { identityFieldNames } from '../../access/identity-fields.ts';
import { type ProtectedList, type Requirement, resourceId } from '../../access/protected-list.ts';
import { acceptsDpop } from '../../access/token-kind.ts';
import {
  findShopCredentials,
  headerAlone,
  type PresentedToken,
  readPresentedToken,
} from '../../access/token-locations.ts';
import { compileRules, type FilterDefinition, largestBody } from '../../app/filter-definition.ts';
import { filterDefinitions } from '../../app/filters.ts';
import { upstreamAddress } from '../../app/upstream.ts';
import { filtersOfQuestions } from '../../authorize/pipeline.ts';
import { takesOpaqueTokens } from '../../config/issuers.ts';
import type { Config, PartialConfig } from '../../config/schema.ts';
import { type CanonicalRequest, methods } from '../../http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../../http/canonicalise-request.ts';
import { type FieldList, fieldValue } from '../../http/field-list.ts';
import {
  buildRejections,
  isRejection,
  type Rejection,
  type RejectionName,
  type Rejections,
} from '../../http/rejection.ts';
import type { Matcher } from '../../proxy/filter.ts';
import { type ForwardPlan, knownRefusal, type PlannedFilter, plan } from '../../proxy/plan.ts';
import {
  type EntityTagExplanation,
  type Explanation,
  emptyExplanation,
  noToken,
  refusalOf,
  withRefusal,
} from './explanation.ts';

export interface AskedRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  /** Further fields, flat. */
  readonly fields?: FieldList | undefined;
  readonly body?: string | undefined;
  /** Fields and body are complete, so they are checked. Default: they count as unknown. */
  readonly isWhole?: boolean | undefined;
}

/** Explains a request by the proxy's own canonicalisation and plan, without sending it. Pure. */
export function explainRequest(
  asked: AskedRequest,
  config: Config,
  list: ProtectedList,
  definitions: readonly FilterDefinition[] = filterDefinitions,
): Explanation {
  const rejections = buildRejections(config.rejections);
  const nothing = emptyExplanation(asked);
  const request = createAskedReader(config)(asked);
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
    const isProxyOnly = config.authorize !== false && !filtersOfQuestions.includes(filter.name);
    return { name: filter.name, ...description, text: isProxyOnly ? `${text}; not by /authorize` : text };
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
  const { refusal, found } = asked.isWhole ? checkWhole(planned, request, config, asked.body) : unchecked;
  const filters = planned.filters.map((one) => {
    const more = found.get(one.filter.name);
    return more === undefined ? describe(one) : { ...describe(one), found: more };
  });
  const explanation: Explanation = {
    ...nothing,
    canonicalPath,
    limits: planned.limits ?? null,
    ...explainToken(planned, request, list, rejections),
    ...explainFilters(planned, filters, rejections),
    ...explainForward(planned, request, config, rejections),
  };
  return refusal === undefined
    ? explanation
    : withRefusal(explanation, refusalOf(refusal, rejections), planned.isObserved);
}

const unchecked = { refusal: undefined, found: new Map<string, string>() };

/**
 * The checks of fields and body, in the order of the pipeline: the form of the credentials, then the filters. `found`: the name
 * of a filter -> what it finds in fields and body.
 */
function checkWhole(planned: ForwardPlan<Matcher>, request: CanonicalRequest, config: Config, body = '') {
  const found = new Map<string, string>();
  const credentials = planned.token === 'none' ? 'found' : presentedBy(request, planned.token, config);
  let refusal = credentials !== 'found' && isRejection(credentials) ? credentials : undefined;
  for (const { filter, match } of planned.filters) {
    const outcome = filter.foresee?.(match, request, Buffer.from(body));
    if (typeof outcome === 'string') found.set(filter.name, outcome);
    else refusal ??= outcome;
  }
  return { refusal, found };
}

/** Reads the token as the access-token filter does. */
function presentedBy(
  request: CanonicalRequest,
  { tokenIn = headerAlone, credentials }: Pick<Requirement, 'tokenIn' | 'credentials'>,
  { auth }: Config,
): PresentedToken | 'found' | Rejection {
  const read = readPresentedToken(
    request,
    tokenIn,
    auth.cookieOrigins,
    takesOpaqueTokens(auth),
    acceptsDpop(auth.proof),
  );
  return isRejection(read) && credentials === 'shop'
    ? findShopCredentials(request, read, auth.sessionCookies)
    : read;
}

/** The access token of a complete request, if the request needs one. */
export function tokenToInspect(
  asked: AskedRequest,
  { token, verdict }: Explanation,
  config: Config,
): string | undefined {
  if (!asked.isWhole || !token.needed || verdict !== 'protected') return undefined;
  const request = createAskedReader(config)(asked);
  const presented = isRejection(request) ? request : presentedBy(request, { tokenIn: token.in }, config);
  return presented === 'found' || isRejection(presented) ? undefined : presented.token;
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
  const afterToken = knownRefusal(planned);
  if (afterToken !== undefined) return { refusal: refusalOf(afterToken, rejections), forward: null };
  const { origin, path } = upstreamAddress(config.upstream.url);
  const forwarded = forwardedOf(planned, config);
  const forward = { upstream: origin, method, target: path + forwarded.path + forwarded.query };
  return { refusal: null, forward };
}

/** The forwarded request, without a token in its query. */
function forwardedOf({ token, forward }: ForwardPlan<Matcher>, config: Config): CanonicalRequest {
  if (token === 'none') return forward;
  const presented = presentedBy(forward, token, config);
  return presented === 'found' || isRejection(presented) ? forward : presented.request;
}

/** Canonicalises requests as if they came from an untrusted peer. The rules are built once: they have some hundred fields. */
export function createAskedReader(config: Pick<PartialConfig, 'auth' | 'request' | 'limits' | 'upstream'>) {
  const rules = buildRequestRules({
    upstreamHost: 'upstream',
    ownFields: identityFieldNames(config.auth?.forward),
    encodedSlash: config.request?.encodedSlash ?? [],
    requestBodyBytes: config.limits === undefined ? 0 : largestBody(config.limits),
    webSocket: config.upstream?.webSocket ?? false,
    extensionMethods: config.request?.methods ?? [],
  });
  return ({ method, target, host, fields = [], body, isWhole = false }: AskedRequest) => {
    const has = (name: string) => fieldValue(fields, name) !== undefined;
    const rawHeaders = [...fields];
    if (!has('host')) rawHeaders.push('Host', host);
    const isFramed = has('content-length') || has('transfer-encoding');
    if (body !== undefined && !isFramed) rawHeaders.push('Content-Length', `${Buffer.byteLength(body)}`);
    // Its type announces a body: a form counts as every method.
    else if (has('content-type') && !isFramed && !isWhole && method !== 'GET' && method !== 'HEAD')
      rawHeaders.push('Transfer-Encoding', 'chunked');
    // A POST without a type would count as a form, which matches the rows of every method.
    if (!has('content-type') && method !== 'GET' && !isWhole)
      rawHeaders.push('Content-Type', 'application/vnd.api+json');
    const head = { method, url: target, rawHeaders, httpVersionMajor: 1, httpVersionMinor: 1 };
    return canonicaliseRequest(head, { address: '127.0.0.1', isTls: false, isTrusted: false }, rules);
  };
}

function explainToken(
  { token, isObserved }: ForwardPlan<Matcher>,
  request: CanonicalRequest,
  list: ProtectedList,
  rejections: Rejections,
): Pick<Explanation, 'verdict' | 'token' | 'rows' | 'whyNot'> {
  if (token === 'none') {
    return { verdict: 'open', token: noToken, rows: [], whyNot: explainMiss(request, list) };
  }
  const interpretations = new Map(list.matchRows(request).map((met) => [met.row, met.interpretation]));
  return {
    verdict: 'protected',
    token: {
      needed: true,
      scopes: token.scopes,
      anyScopes: token.anyScopes ?? [],
      conditions: token.conditions ?? [],
      in: token.tokenIn ?? headerAlone,
      credentials: token.credentials ?? null,
      proof: token.proof,
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
      conditions: conditionTexts(row),
      observe: row.observe,
      exact: interpretations.get(row)?.length === 0,
      reading: interpretations.get(row) ?? [],
      decides: row === token.row,
    })),
    whyNot: [],
  };
}

/** Why no row matches, if that can be told: another row opens the path, or the method differs. */
function explainMiss(request: CanonicalRequest, list: ProtectedList): string[] {
  if (request.method === 'OPTIONS') return ['OPTIONS is never authenticated'];
  const open = request.method === 'POST' ? list.openedBy(request) : undefined;
  if (open !== undefined)
    return [`${resourceId(open)} (${open.source.file}:${open.source.line}) is open: true`];
  const others = methods.filter(
    (method) => method !== 'HEAD' && list.matchRows({ ...request, method, isFormPost: false }).length > 0,
  );
  return others.length === 0 ? [] : [`the method differs: the list has ${others.join(', ')} for this path`];
}

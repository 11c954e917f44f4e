import { type ProtectedList, resourceId } from '../../access/protected-list.ts';
import type { FilterDefinition } from '../../app/filter-definition.ts';
import { compileRules } from '../../app/filter-definition.ts';
import { filterDefinitions } from '../../app/filters.ts';
import type { Config, PartialConfig } from '../../config/schema.ts';
import { type CanonicalRequest, requestTarget } from '../../http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../../http/canonicalise-request.ts';
import type { FieldList } from '../../http/field-list.ts';
import type { ReadingStep } from '../../http/path-table.ts';
import {
  buildRejections,
  isRejection,
  type Rejection,
  type RejectionName,
  type Rejections,
} from '../../http/rejection.ts';
import type { FilterDescription, Matcher } from '../../proxy/filter.ts';
import { type ForwardPlan, knownRefusal, type PlannedFilter, plan } from '../../proxy/plan.ts';
import { explainMiss } from './nearest-rows.ts';

interface AskedRequest {
  readonly method: string;
  readonly target: string;
  readonly host: string;
  /** Further fields, flat. */
  readonly fields?: FieldList;
}

/** A refusal as the client sees it. */
export interface Refusal {
  readonly rejection: RejectionName;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** A word that says more, for the log. */
  readonly reason?: string;
}

/**
 * What would happen to a request, step by step: the answer of `explain --json`. Keys are only ever added. What does
 * not apply is null or empty, never absent.
 */
export interface Explanation {
  readonly request: { readonly method: string; readonly target: string; readonly host: string };
  /** `refused` by its form alone; `own-endpoint`: answered by shopward; `protected` and `open`: forwarded. */
  readonly verdict: 'refused' | 'own-endpoint' | 'protected' | 'open';
  readonly canonicalPath: string | null;
  readonly refusal: Refusal | null;
  /** Name of the filter that answers. */
  readonly ownEndpoint: string | null;
  readonly token: {
    readonly needed: boolean;
    /** All of them are required. */
    readonly scopes: readonly string[];
    /** Refusals are only logged and counted: the proxy, or every row that is met, is in observe mode. */
    readonly observed: boolean;
    readonly missing: Refusal | null;
    readonly invalid: Refusal | null;
  };
  readonly rows: readonly ExplainedRow[];
  /** Why no row is met. */
  readonly whyNot: readonly string[];
  /** Every filter that has a say in it, in their order. */
  readonly filters: readonly (FilterDescription & { readonly name: string })[];
  /** What `filters` says of entity tags. */
  readonly entityTags: EntityTagExplanation | null;
  /** What it may do to refresh tokens: of `issue`, `exchange` and `revoke` several, where one path does. */
  readonly refreshTokens: readonly unknown[];
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
  /** False: only a lenient reading of the path meets it, such as another case or an extra slash. */
  readonly exact: boolean;
  /** Which reading that is, step by step; empty where the path as it stands meets it. */
  readonly reading: readonly ReadingStep[];
  /** The row that log and metrics name. */
  readonly decides: boolean;
}

/** Pure: the proxy's own canonical request and its own plan, without a request being made. */
export function explainRequest(
  asked: AskedRequest,
  config: Config,
  list: ProtectedList,
  definitions: readonly FilterDefinition[] = filterDefinitions,
): Explanation {
  const rejections = buildRejections(config.rejections);
  const { method, target, host } = asked;
  const nothing: Explanation = {
    request: { method, target, host },
    verdict: 'open',
    canonicalPath: null,
    refusal: null,
    ownEndpoint: null,
    token: { needed: false, scopes: [], observed: false, missing: null, invalid: null },
    rows: [],
    whyNot: [],
    filters: [],
    entityTags: null,
    refreshTokens: [],
    forward: null,
  };
  const request = canonicaliseAsked(asked, config);
  if (isRejection(request))
    return { ...nothing, verdict: 'refused', refusal: refusalOf(request, rejections) };
  const canonicalPath = request.path;
  const planned = plan(request, compileRules(config, list, definitions));
  if (isRejection(planned)) {
    return { ...nothing, verdict: 'refused', canonicalPath, refusal: refusalOf(planned, rejections) };
  }
  const describe = ({ filter, match }: PlannedFilter<Matcher>) => ({
    name: filter.name,
    ...filter.describe(match, request, (name) => `${rejections[name].status} code ${rejections[name].code}`),
  });
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
  return {
    ...nothing,
    canonicalPath,
    ...explainToken(planned, request, list, rejections),
    ...explainFilters(planned, planned.filters.map(describe), rejections),
    ...explainForward(planned, request, config, rejections),
  };
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
  { upstream }: Config,
  rejections: Rejections,
): Pick<Explanation, 'refusal' | 'forward'> {
  const behindToken = knownRefusal(planned);
  if (behindToken !== undefined) return { refusal: refusalOf(behindToken, rejections), forward: null };
  const forward = { upstream: upstream.url, method, target: requestTarget(planned.forward) };
  return { refusal: null, forward };
}

/** As it would come over the wire, from a machine that nobody trusts. */
export function canonicaliseAsked(
  { method, target, host, fields = [] }: AskedRequest,
  config: Pick<PartialConfig, 'request' | 'limits'>,
) {
  const rules = buildRequestRules({
    upstreamHost: 'upstream',
    encodedSlash: config.request?.encodedSlash ?? [],
    requestBodyBytes: config.limits?.requestBody ?? 0,
  });
  const has = (name: string) => fields.some((part, i) => i % 2 === 0 && part.toLowerCase() === name);
  const rawHeaders = [...fields];
  if (!has('host')) rawHeaders.push('Host', host);
  // Without a type a POST counts as a form, and as every method of its path: not what is meant.
  if (!has('content-type') && method !== 'GET') rawHeaders.push('Content-Type', 'application/vnd.api+json');
  const head = { method, url: target, rawHeaders, httpVersionMajor: 1, httpVersionMinor: 1 };
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
      token: { needed: false, scopes: [], observed: false, missing: null, invalid: null },
      rows: [],
      whyNot: explainMiss(request, list),
    };
  }
  const readings = new Map(list.matchRows(request).map((met) => [met.row, met.reading]));
  return {
    verdict: 'protected',
    token: {
      needed: true,
      scopes: token.scopes,
      observed: isObserved,
      missing: refusalOf({ rejection: 'access-token-missing' }, rejections),
      invalid: refusalOf({ rejection: 'access-token-invalid' }, rejections),
    },
    rows: token.rows.map((row) => ({
      row: resourceId(row),
      group: row.group,
      file: row.source.file,
      line: row.source.line,
      scopes: row.scopes,
      observe: row.observe,
      exact: readings.get(row)?.length === 0,
      reading: readings.get(row) ?? [],
      decides: row === token.row,
    })),
    whyNot: [],
  };
}

function refusalOf(
  { rejection, reason }: Pick<Rejection, 'rejection' | 'reason'>,
  rejections: Rejections,
): Refusal {
  const { status, code, detail } = rejections[rejection];
  return { rejection, status, code, detail, ...(reason !== undefined && { reason }) };
}

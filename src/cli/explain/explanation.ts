import { type ProtectedList, resourceId } from '../../access/protected-list.ts';
import type { Config } from '../../config/schema.ts';
import { type CanonicalRequest, requestTarget } from '../../http/canonical-request.ts';
import { buildRequestRules, canonicaliseRequest } from '../../http/canonicalise-request.ts';
import type { FieldList } from '../../http/field-list.ts';
import type { ReadingStep } from '../../http/path-table.ts';
import { buildRejections, isRejection, type RejectionName, type Rejections } from '../../http/rejection.ts';
import { compileTokenEndpoints } from '../../refresh-tokens/endpoints.ts';
import { type EntityTagRule, findEntityTagRule, hasNoId, lenientSpellingRule } from './entity-tag-rule.ts';
import { explainMiss } from './nearest-rows.ts';
import { findOwnEndpoint, type OwnEndpointName } from './own-endpoint.ts';

export interface AskedRequest {
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
  readonly ownEndpoint: OwnEndpointName | null;
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
  readonly entityTags: EntityTagRule | null;
  /** What it may do to refresh tokens: several, where one path issues and exchanges. */
  readonly refreshTokens: readonly ('issue' | 'exchange' | 'revoke')[];
  /** Null: nothing that passes the checks above would be forwarded either. */
  readonly forward: { readonly upstream: string; readonly method: string; readonly target: string } | null;
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

/** Pure: the proxy's own canonical request, compiled list, tables and rules, without a request being made. */
export function explainRequest(asked: AskedRequest, config: Config, list: ProtectedList): Explanation {
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
    entityTags: null,
    refreshTokens: [],
    forward: null,
  };
  const request = canonicalise(asked, config);
  if (isRejection(request)) {
    const refusal = refusalOf(request.rejection, rejections, request.reason);
    return { ...nothing, verdict: 'refused', refusal };
  }
  const canonicalPath = request.path;
  const ownEndpoint = findOwnEndpoint(request, config);
  if (ownEndpoint !== null) return { ...nothing, verdict: 'own-endpoint', canonicalPath, ownEndpoint };
  if (hasNoId(request, config)) {
    const refusal = refusalOf('resource-id-missing', rejections);
    return { ...nothing, verdict: 'refused', canonicalPath, refusal };
  }
  const refreshTokens = findTokenKinds(request, config);
  const tracked = findEntityTagRule(request, config, rejections);
  // A change that two gates would have to watch is refused, whatever each of them says.
  const entityTags = tracked && refreshTokens.length > 0 ? lenientSpellingRule(rejections) : tracked;
  const forward = { upstream: config.upstream.url, method: request.method, target: requestTarget(request) };
  return {
    ...nothing,
    ...explainProtection(request, config, list, rejections),
    canonicalPath,
    entityTags,
    refreshTokens,
    forward: entityTags?.rule === 'lenient-spelling' ? null : forward,
  };
}

function canonicalise({ method, target, host, fields = [] }: AskedRequest, config: Config) {
  const rules = buildRequestRules({
    upstreamHost: 'upstream',
    encodedSlash: config.request.encodedSlash,
    requestBodyBytes: config.limits.requestBody,
  });
  const has = (name: string) => fields.some((part, i) => i % 2 === 0 && part.toLowerCase() === name);
  const rawHeaders = [...fields];
  if (!has('host')) rawHeaders.push('Host', host);
  // Without a type a POST counts as a form, and as every method of its path: not what is meant.
  if (!has('content-type') && method !== 'GET') rawHeaders.push('Content-Type', 'application/vnd.api+json');
  const head = { method, url: target, rawHeaders, httpVersionMajor: 1, httpVersionMinor: 1 };
  return canonicaliseRequest(head, { address: '127.0.0.1', isTls: false, isTrusted: false }, rules);
}

function explainProtection(
  request: CanonicalRequest,
  config: Config,
  list: ProtectedList,
  rejections: Rejections,
): Pick<Explanation, 'verdict' | 'token' | 'rows' | 'whyNot'> {
  const requirement = list.match(request);
  const observed = config.mode === 'observe' || requirement?.observe === true;
  if (requirement === undefined) {
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
      scopes: requirement.scopes,
      observed,
      missing: refusalOf('access-token-missing', rejections),
      invalid: refusalOf('access-token-invalid', rejections),
    },
    rows: requirement.rows.map((row) => ({
      row: resourceId(row),
      group: row.group,
      file: row.source.file,
      line: row.source.line,
      scopes: row.scopes,
      observe: row.observe,
      exact: readings.get(row)?.length === 0,
      reading: readings.get(row) ?? [],
      decides: row === requirement.row,
    })),
    whyNot: [],
  };
}

function findTokenKinds(request: CanonicalRequest, config: Config): Explanation['refreshTokens'] {
  if (config.refreshTokens === false) return [];
  const { endpoints } = config.refreshTokens;
  const met = compileTokenEndpoints(endpoints, config.request)(request);
  if (met === undefined) return [];
  return [
    ...(met.issues.length > 0 ? (['issue'] as const) : []),
    ...(met.refreshes.length > 0 ? (['exchange'] as const) : []),
    ...(met.revokes === undefined ? [] : (['revoke'] as const)),
  ];
}

function refusalOf(rejection: RejectionName, rejections: Rejections, reason?: string): Refusal {
  const { status, code, detail } = rejections[rejection];
  return { rejection, status, code, detail, ...(reason !== undefined && { reason }) };
}

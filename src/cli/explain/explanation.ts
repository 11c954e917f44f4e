import type { RowConditions } from '../../access/claim-conditions.ts';
import type { TokenInspection } from '../../access/token-inspection.ts';
import type { TokenLocation } from '../../access/token-locations.ts';
import type { Config } from '../../config/schema.ts';
import {
  buildRejections,
  isRejection,
  type Rejection,
  type RejectionName,
  type Rejections,
} from '../../http/rejection.ts';
import type { FilterDescription } from '../../proxy/filter.ts';
import type { RouteLimits } from '../../proxy/plan.ts';
import { reasonLink } from '../../rollout/reasons.ts';
import type { InterpretationStep } from '../../routes/path-table.ts';

/** A refusal as the client sees it. */
export interface Refusal {
  readonly rejection: RejectionName;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  /** The detail that the log has. */
  readonly reason?: string;
  /** The section of the docs with its cause and cure. */
  readonly see: string;
}

/**
 * What would happen to a request: the output of `explain --json`. Keys may be added, but are never removed or renamed. What does
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
    /** All of these are required. */
    readonly scopes: readonly string[];
    /** One of each list is required. */
    readonly anyScopes: readonly (readonly string[])[];
    /** The conditions of the rows, with the parameters of this path. */
    readonly conditions: readonly RowConditions[];
    /** Where the token may be in the request. */
    readonly in: readonly TokenLocation[];
    /** `shop`: HTTP Basic and session cookies also count; the shop checks them. */
    readonly credentials: 'shop' | null;
    /** The token must be bound to a key of the client. Undefined: it need not. */
    readonly proof?: 'required' | undefined;
    /** Refusals are only logged and counted: the proxy, or every matching row, is in observe mode. */
    readonly observed: boolean;
    readonly missing: Refusal | null;
    readonly invalid: Refusal | null;
    /** The inspection of the request's own token; null: it has none, or it was not inspected. */
    readonly inspection: TokenInspection | null;
  };
  /** The refusal of a complete request that observe mode does not enforce. */
  readonly observed: Refusal | null;
  readonly rows: readonly ExplainedRow[];
  /** Why no row matches. */
  readonly whyNot: readonly string[];
  /** Every filter that matches, in their order. */
  readonly filters: readonly (FilterDescription & { readonly name: string; readonly found?: string })[];
  /** What the entity-tag filter would do. */
  readonly entityTags: EntityTagExplanation | null;
  /** What the request may do to refresh tokens: one or more of `issue`, `exchange` and `revoke`. */
  readonly refreshTokens: readonly unknown[];
  /** The limits of the route, in bytes and milliseconds; null: `limits.routes` is empty. */
  readonly limits: RouteLimits | null;
  /** Null: the request is never forwarded, whatever the checks above say. */
  readonly forward: { readonly upstream: string; readonly method: string; readonly target: string } | null;
}

export interface EntityTagExplanation {
  readonly rule: string;
  /** Null: the path may mean several resources. */
  readonly resource: Readonly<Record<string, unknown>> | null;
  readonly text: string;
}

export interface ExplainedRow {
  readonly row: string;
  readonly group: string;
  readonly file: string;
  readonly line: number;
  readonly scopes: readonly string[];
  /** Conditions on the claims of the token, in words. */
  readonly conditions: readonly string[];
  readonly observe: boolean;
  /** False: the row matches only a lenient interpretation of the path: another case, an extra slash. */
  readonly exact: boolean;
  /** The steps of that interpretation; empty: the row matches the path unchanged. */
  readonly reading: readonly InterpretationStep[];
  /** The row that log and metrics name. */
  readonly decides: boolean;
}

export function emptyExplanation({ method, target, host }: Explanation['request']): Explanation {
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

export const noToken = {
  ...{ needed: false, scopes: [], anyScopes: [], conditions: [], in: [], credentials: null, observed: false },
  ...{ missing: null, invalid: null, inspection: null },
} as const;

/** The explanation with a refusal, unless it has one already; in observe mode it is only noted. */
export function withRefusal(explanation: Explanation, refusal: Refusal, isObserved: boolean): Explanation {
  if (explanation.refusal !== null) return explanation;
  return isObserved
    ? { ...explanation, observed: explanation.observed ?? refusal }
    : { ...explanation, refusal, forward: null };
}

/** The explanation with the inspection of its token; a bad one is refused before any filter runs. */
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

export function refusalOf(
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
    see: reasonLink(rejection, reason),
  };
}

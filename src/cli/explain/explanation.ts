import type { TokenInspection } from '../../access/token-inspection.ts';
import type { TokenPlace } from '../../access/token-places.ts';
import type { Config } from '../../config/schema.ts';
import type { InterpretationStep } from '../../http/path-table.ts';
import {
  buildRejections,
  isRejection,
  type Rejection,
  type RejectionName,
  type Rejections,
} from '../../http/rejection.ts';
import type { FilterDescription } from '../../proxy/filter.ts';
import type { RouteLimits } from '../../proxy/route-limits.ts';

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

export interface EntityTagExplanation {
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
  ...{ needed: false, scopes: [], in: [], observed: false },
  ...{ missing: null, invalid: null, inspection: null },
} as const;

/** The same where this is refused as well; observe mode only notes it. The first refusal counts. */
export function withRefusal(explanation: Explanation, refusal: Refusal, isObserved: boolean): Explanation {
  if (explanation.refusal !== null) return explanation;
  return isObserved
    ? { ...explanation, observed: explanation.observed ?? refusal }
    : { ...explanation, refusal, forward: null };
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
  asked: Explanation['request'],
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
    see: reasonPlace(rejection, reason),
  };
}

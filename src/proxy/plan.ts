import type { ProtectedList, Requirement } from '../access/protected-list.ts';
import { withoutReferredToken } from '../access/token-locations.ts';
import { type CanonicalRequest, isSafe, type Method } from '../http/canonical-request.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { buildPathTable, type PathRules } from '../routes/path-table.ts';
import type { Filter, Matcher } from './filter.ts';

/** The compiled configuration and list from which a plan is made. */
export interface PlanRules<F extends Matcher = Filter> {
  /** Endpoints that shopward answers itself, whatever the list says; the first match counts. */
  readonly endpoints: readonly F[];
  /** The protected list. A request keeps its row even if the list changes meanwhile. */
  readonly list: { readonly inForce: Pick<ProtectedList, 'match' | 'tokenParameters'> };
  /** Filters of a forwarded request, in this order; a filter with hooks for the upstream comes last. */
  readonly filters: readonly F[];
  readonly observe: boolean;
  /** Limits of a request whose route has its own. Default: the same for all requests, set in the upstream client. */
  readonly limitsOf?: ((request: CanonicalRequest) => RouteLimits) | undefined;
}

/** Everything that is decided about a request without a call to others. */
type Plan<F extends Matcher = Filter> =
  | Rejection
  /** Answered by shopward, without a token. If the endpoint has no answer, `planForward` plans the request again. */
  | { readonly endpoint: PlannedFilter<F> }
  | ForwardPlan<F>;

export interface ForwardPlan<F extends Matcher = Filter> {
  /** Template of the row that decides; `*`: no row. */
  readonly route: string;
  readonly token: 'none' | Requirement;
  /** Observe mode: the refusals that it covers are noted, and the request continues. */
  readonly isObserved: boolean;
  readonly filters: readonly PlannedFilter<F>[];
  /** The refusal after a good token; the filters then do not run. */
  readonly refusal: Rejection | undefined;
  /** Undefined: the general limits. */
  readonly limits: RouteLimits | undefined;
  /** The request for the upstream, before the filters' edits; without a `Referer` that may have a token. */
  readonly forward: CanonicalRequest;
}

export interface PlannedFilter<F extends Matcher = Filter> {
  readonly filter: F;
  readonly match: unknown;
}

const tooLarge = reject('payload-too-large');
const matchedTwice = reject('lenient-spelling', { reason: 'two-gates' });
const filteredHandshake = reject('bad-request', { reason: 'websocket' });

/**
 * Decides what happens to a request; no other code does. The pipeline carries the plan out, for WebSocket handshakes too;
 * `explain` and the console print it. Pure, and without a promise.
 */
export function plan<F extends Matcher>(request: CanonicalRequest, rules: PlanRules<F>): Plan<F> {
  const { path } = request;
  const end = path.endsWith('/') ? path.length - 1 : path.length;
  for (const filter of rules.endpoints) {
    if (filter.pathEnd !== undefined && !path.endsWith(filter.pathEnd, end)) continue;
    const match = filter.match(request);
    if (match === undefined) continue;
    return isRejection(match) ? match : { endpoint: { filter, match } };
  }
  return planForward(request, rules);
}

/** Plans a request that no endpoint answers: the list and the filters apply to it. */
export function planForward<F extends Matcher>(
  request: CanonicalRequest,
  rules: PlanRules<F>,
): Rejection | ForwardPlan<F> {
  if (request.refusedTarget !== undefined) return request.refusedTarget;
  const { method, query, body } = request;
  const limits = rules.limitsOf?.(request);
  if (limits !== undefined && typeof body === 'object' && body.length > limits.requestBodyBytes)
    return tooLarge;
  const filters: PlannedFilter<F>[] = [];
  let hooking: PlannedFilter<F> | undefined;
  let refusal: Rejection | undefined;
  const isPlainRead = (method === 'GET' || method === 'HEAD') && query.length <= 1 && body === 'none';
  for (const filter of rules.filters) {
    if (isPlainRead && filter.skipsPlainReads === true) continue;
    if (filter.hooksUpstream === true && hooking !== undefined && isSafe(request.method)) continue;
    const match = filter.match(request);
    if (match === undefined) continue;
    if (isRejection(match)) return match;
    if (filter.hooksUpstream === true) {
      refusal ??= conflictOf(request, hooking);
      hooking ??= { filter, match };
    } else filters.push({ filter, match });
  }
  // The filter with hooks comes last: after a later refusal its hooks would never get an outcome.
  if (hooking !== undefined) filters.push(hooking);
  const { inForce } = rules.list;
  const requirement = inForce.match(request);
  return {
    route: requirement?.route ?? '*',
    token: requirement ?? 'none',
    isObserved: rules.observe || requirement?.observe === true,
    filters,
    refusal,
    limits,
    forward:
      inForce.tokenParameters.length === 0 ? request : withoutReferredToken(request, inForce.tokenParameters),
  };
}

/**
 * Refuses a change that two filters would have to check, such as one of `/access-tokens/1/carts/2`: no honest client sends
 * it, and one filter alone would miss the other's part. Also refuses a WebSocket handshake that a filter would have to
 * check: after it the shop answers on a raw socket, where no filter sees the outcome.
 */
function conflictOf(request: CanonicalRequest, hooking: object | undefined): Rejection | undefined {
  if (hooking !== undefined) return matchedTwice;
  return request.isWebSocketUpgrade === true ? filteredHandshake : undefined;
}

/** The certain refusal after a good token; undefined: the outcome depends on fields, bodies and stores. */
export function knownRefusal<F extends Matcher>({ refusal, filters }: ForwardPlan<F>): Rejection | undefined {
  const known = filters.map(({ filter, match }) => filter.refusal?.(match));
  return refusal ?? known.find((one) => one !== undefined);
}

export interface RouteLimits {
  readonly requestBodyBytes: number;
  readonly responseTimeoutMs: number;
}

interface LimitedRoute {
  readonly method: Method | 'ANY';
  readonly path: string;
  readonly requestBody?: number | undefined;
  readonly responseTimeout?: number | undefined;
}

/**
 * Compiles `limits.routes`; undefined if there are none. A route matches only the exact path, because another spelling must not
 * give a larger limit. If several routes match a request, the smallest value counts.
 */
export function compileRouteLimits(
  routes: readonly LimitedRoute[],
  usual: RouteLimits,
  rules: PathRules,
): ((request: CanonicalRequest) => RouteLimits) | undefined {
  if (routes.length === 0) return undefined;
  const table = buildPathTable(
    routes.map((route) => ({ method: route.method, template: route.path, data: route })),
    rules,
  );
  return (request) => {
    const met = table.match(request).filter(({ exact }) => exact);
    if (met.length === 0) return usual;
    const least = (key: 'requestBody' | 'responseTimeout', other: number) => {
      const set = met.map(({ data }) => data[key]).filter((value) => value !== undefined);
      return set.length === 0 ? other : set.reduce((one, next) => Math.min(one, next));
    };
    return {
      requestBodyBytes: least('requestBody', usual.requestBodyBytes),
      responseTimeoutMs: least('responseTimeout', usual.responseTimeoutMs),
    };
  };
}

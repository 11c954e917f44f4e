import type { Requirement } from '../access/protected-list.ts';
import { type CanonicalRequest, isSafe } from '../http/canonical-request.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import type { Filter, Matcher } from './filter.ts';
import type { RouteLimits } from './route-limits.ts';

/** What a plan is made by: the configuration and the list in force, compiled. */
export interface PlanRules<F extends Matcher = Filter> {
  /** What shopward answers itself, whatever the list says; the first one that matches. */
  readonly endpoints: readonly F[];
  /** The row of the protected list that a request meets, under the list in force now. */
  readonly accessToken: {
    match(request: CanonicalRequest): Requirement | undefined;
    /** Default: the request as it is. */
    withoutReferredToken?(request: CanonicalRequest): CanonicalRequest;
  };
  /** What has a say in a request that is forwarded, in this order; one that hooks the upstream comes last. */
  readonly filters: readonly F[];
  /** The whole proxy is in observe mode. */
  readonly observe: boolean;
  /** Limits of a request, where there are some by route. Default: the same for all, which the upstream's side knows. */
  readonly limitsOf?: ((request: CanonicalRequest) => RouteLimits) | undefined;
}

/** All that is decided of a request before anybody is asked anything. */
export type Plan<F extends Matcher = Filter> = Rejection | EndpointPlan<F> | ForwardPlan<F>;

/** Answered here; no token is needed. What the endpoint hands on is planned anew, by `planForward`. */
export interface EndpointPlan<F extends Matcher = Filter> {
  readonly endpoint: PlannedFilter<F>;
}

export interface ForwardPlan<F extends Matcher = Filter> {
  /** Template of the row that decides; `*` without one. */
  readonly route: string;
  /** `none`, or what the token must bring. */
  readonly token: 'none' | Requirement;
  /** Observe mode: soft refusals are noted, and the request goes on. */
  readonly isObserved: boolean;
  readonly filters: readonly PlannedFilter<F>[];
  /** What follows a good token in place of the filters. */
  readonly refusal: Rejection | undefined;
  /** Undefined: those of every request. */
  readonly limits: RouteLimits | undefined;
  /** What goes to the upstream but for the filters' edits: the very request that was decided on. */
  readonly forward: CanonicalRequest;
}

export interface PlannedFilter<F extends Matcher = Filter> {
  readonly filter: F;
  readonly match: unknown;
}

const noFilters: readonly never[] = [];
const matchedTwice = reject('lenient-spelling', { reason: 'two-gates' });
const filteredHandshake = reject('bad-request', { reason: 'websocket' });

/**
 * What a request meets: the one place that decides it. The pipeline acts on it, for handshakes of WebSockets too;
 * `explain` and the console print it. Pure, and no promise.
 */
export function plan<F extends Matcher>(request: CanonicalRequest, rules: PlanRules<F>): Plan<F> {
  for (const filter of rules.endpoints) {
    const match = filter.match(request);
    if (match === undefined) continue;
    return isRejection(match) ? match : { endpoint: { filter, match } };
  }
  return planForward(request, rules);
}

/** The same for what no endpoint answers, and for what one has handed on: the list and the filters hold as for any request. */
export function planForward<F extends Matcher>(
  request: CanonicalRequest,
  rules: PlanRules<F>,
): Rejection | ForwardPlan<F> {
  const limits = rules.limitsOf?.(request);
  if (limits !== undefined && announcedBytes(request) > limits.requestBodyBytes) return tooLarge;
  let filters: PlannedFilter<F>[] | undefined;
  let holder: PlannedFilter<F> | undefined;
  let refusal: Rejection | undefined;
  for (const filter of rules.filters) {
    if (filter.hooksUpstream === true && holder !== undefined && isSafe(request.method)) continue;
    const match = filter.match(request);
    if (match === undefined) continue;
    if (isRejection(match)) return match;
    if (filter.hooksUpstream === true) {
      refusal ??= conflictOf(request, holder);
      holder ??= { filter, match };
    } else if (filters === undefined) filters = [{ filter, match }];
    else filters.push({ filter, match });
  }
  // The last one: what it has begun is then never left without an outcome by another's refusal.
  if (holder !== undefined) {
    if (filters === undefined) filters = [holder];
    else filters.push(holder);
  }
  const requirement = rules.accessToken.match(request);
  return {
    route: requirement?.route ?? '*',
    token: requirement ?? 'none',
    isObserved: rules.observe || requirement?.observe === true,
    filters: filters ?? noFilters,
    refusal,
    limits,
    forward: rules.accessToken.withoutReferredToken?.(request) ?? request,
  };
}

const tooLarge = reject('payload-too-large');

function announcedBytes({ body }: CanonicalRequest): number {
  return typeof body === 'object' ? body.length : 0;
}

/**
 * A change that two filters would have to watch, such as one of `/access-tokens/1/carts/2`, has no honest sender: asking
 * only one of them would let it pass the other unseen. Nor has a handshake that one would have to watch: after it the
 * shop answers on a bare socket, where nobody hears of the outcome.
 */
function conflictOf(request: CanonicalRequest, holder: object | undefined): Rejection | undefined {
  if (holder !== undefined) return matchedTwice;
  return request.isWebSocketUpgrade === true ? filteredHandshake : undefined;
}

/** What is refused for sure once the token is good; undefined: that depends on fields, bodies and stores. */
export function knownRefusal<F extends Matcher>({ refusal, filters }: ForwardPlan<F>): Rejection | undefined {
  if (refusal !== undefined) return refusal;
  for (const { filter, match } of filters) {
    const known = filter.refusal?.(match);
    if (known !== undefined) return known;
  }
  return undefined;
}

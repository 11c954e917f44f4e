import type { IncomingMessage } from 'node:http';
import type { Requirement } from '../access/protected-list.ts';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { type Answer, isAnswer, isRejection, type Rejection, type RejectionName } from '../http/rejection.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import { isolate } from '../lib/faults.ts';
import type { Exchange } from '../server/exchange.ts';
import { beyondShare } from '../server/in-flight.ts';
import type { UpstreamHooks } from '../upstream/hooks.ts';
import type { Admission, Continue, FilterContext, Identity } from './filter.ts';
import {
  type ForwardPlan,
  type PlannedFilter,
  type PlanRules,
  plan,
  planForward,
  type RouteLimits,
} from './plan.ts';

export interface PipelineDependencies {
  canonicalise(incoming: IncomingMessage): CanonicalRequest | Rejection;
  readonly rules: PlanRules;
  /** Checks a request's credentials. `isProven`: they have passed before, with a proof of possession that is used up. */
  authenticate(
    request: CanonicalRequest,
    requirement: Requirement,
    isProven?: boolean,
  ): Eventually<Admission | Rejection>;
  readBody(exchange: Exchange, request: CanonicalRequest, limits?: RouteLimits): Promise<Buffer | Rejection>;
  /** Forwards the request to the upstream. Every given hook gets the outcome. */
  forward(
    exchange: Exchange,
    request: CanonicalRequest,
    identity: Identity | undefined,
    body?: Buffer,
    hooks?: UpstreamHooks,
    limits?: RouteLimits,
  ): Pending;
}

/** Refusals of credentials that observe mode does not enforce. Faults of shopward and limits are always enforced. */
const softRejections: ReadonlySet<RejectionName> = new Set([
  'access-token-missing',
  'access-token-invalid',
  'access-token-repeated',
  'proof-invalid',
  'cross-site-request',
  'insufficient-scope',
  'not-permitted',
]);

type Pending = Eventually<void> | undefined;
type Verdict = Continue | Answer | Rejection;
/** `body` is read when the first filter wants it. */
type OwnContext = FilterContext & { body: Buffer | undefined };

/** The path of each request: canonical request -> plan -> endpoint, or access token -> filters -> upstream. */
export class Pipeline {
  readonly #dependencies: PipelineDependencies;

  constructor(dependencies: PipelineDependencies) {
    this.#dependencies = dependencies;
  }

  readonly run = (exchange: Exchange): void => {
    try {
      const pending = this.#handle(exchange);
      if (pending instanceof Promise) pending.catch((fault: unknown) => isolate(() => exchange.fail(fault)));
    } catch (fault) {
      exchange.fail(fault);
    }
  };

  /** Decides again about an admitted request. `free`: it needs no token, or its row observes. `isProven`: it has passed with a token. */
  readonly admits = (
    request: CanonicalRequest,
    isProven: boolean,
  ): Eventually<Rejection | 'admitted' | 'free'> => {
    const { rules, authenticate } = this.#dependencies;
    const planned = planForward(request, rules);
    if (isRejection(planned)) return planned;
    const { token, isObserved, forward } = planned;
    if (token === 'none' || isObserved) return 'free';
    const pending = authenticate(forward, token, isProven);
    return andThen(pending, (verdict) => (isRejection(verdict) ? verdict : 'admitted'));
  };

  /** Steps that need not wait run in this call: most requests wait only for the upstream. */
  #handle(exchange: Exchange): Pending {
    const { canonicalise, rules } = this.#dependencies;
    const request = canonicalise(exchange.incoming);
    if (isRejection(request)) return exchange.refuse(request);
    // A refused target is recorded as it was sent.
    if (request.refusedTarget === undefined) exchange.request = request;
    if (!exchange.slot.takeFor(request.clientAddress)) return exchange.refuse(beyondShare);
    const planned = plan(request, rules);
    if (isRejection(planned)) return exchange.refuse(planned);
    return 'endpoint' in planned
      ? this.#answerHere(exchange, planned.endpoint, request)
      : this.#follow(exchange, planned);
  }

  #follow(exchange: Exchange, planned: ForwardPlan): Pending {
    exchange.route = planned.route;
    if (planned.token === 'none') return this.#pass(exchange, planned, planned.forward, undefined);
    const { tokenIn, credentials } = planned.token;
    // Answers under an observing row stay unchanged, unless the token may be where caches do not look for one.
    exchange.variesByCookie = tokenIn !== undefined || credentials === 'shop';
    exchange.isPrivate = exchange.variesByCookie || !planned.isObserved;
    const pending = this.#dependencies.authenticate(planned.forward, planned.token);
    return andThen(pending, (verdict) => this.#admit(exchange, planned, verdict));
  }

  #answerHere(exchange: Exchange, { filter, match }: PlannedFilter, request: CanonicalRequest): Pending {
    exchange.route = filter.route ?? '*';
    const pending = filter.run(match, { request, identity: undefined, body: undefined, isObserved: false });
    return andThen(pending, (verdict) => this.#respond(exchange, verdict, request));
  }

  /** If an endpoint has no answer, the request continues like any other, and the list applies. */
  #respond(exchange: Exchange, answer: Verdict, request: CanonicalRequest): Pending {
    if (isRejection(answer)) return exchange.refuse(answer);
    if (isAnswer(answer)) return exchange.answer(answer);
    const planned = planForward(request, this.#dependencies.rules);
    return isRejection(planned) ? exchange.refuse(planned) : this.#follow(exchange, planned);
  }

  #admit(exchange: Exchange, planned: ForwardPlan, verdict: Admission | Rejection): Pending {
    if (verdict === 'unjudged') return this.#pass(exchange, planned, planned.forward, undefined);
    if (isRejection(verdict)) {
      if (!planned.isObserved || !softRejections.has(verdict.rejection)) return exchange.refuse(verdict);
      exchange.observe(verdict);
      return this.#pass(exchange, planned, planned.forward, undefined);
    }
    const { identity, request, observed } = verdict;
    if (observed !== undefined) exchange.observe(observed);
    exchange.sender = identity;
    if (!exchange.slot.takeForSubject(identity.subject)) return exchange.refuse(beyondShare);
    return this.#pass(exchange, planned, request, identity);
  }

  #pass(
    exchange: Exchange,
    planned: ForwardPlan,
    request: CanonicalRequest,
    identity: Identity | undefined,
  ): Pending {
    const { refusal, filters, limits, isObserved } = planned;
    if (refusal !== undefined) return exchange.refuse(refusal);
    return filters.length === 0
      ? this.#dependencies.forward(exchange, request, identity, undefined, undefined, limits)
      : this.#runFilters(exchange, planned, { request, identity, body: undefined, isObserved }, 0);
  }

  /** Runs the filters from index `at` on. An immediate result is used in this call, without a promise. */
  #runFilters(exchange: Exchange, planned: ForwardPlan, context: OwnContext, at: number): Pending {
    const { filter, match } = planned.filters[at] as PlannedFilter;
    const { request, isObserved } = context;
    if (context.body === undefined && filter.wantsBody?.(match, request, isObserved)) {
      return this.#dependencies.readBody(exchange, request, planned.limits).then((read) => {
        if (isRejection(read)) return exchange.refuse(read);
        context.body = read;
        return this.#runFilters(exchange, planned, context, at);
      });
    }
    const pending = filter.run(match, context);
    return andThen(pending, (verdict) => this.#heedFilter(exchange, planned, context, at, verdict));
  }

  #heedFilter(
    exchange: Exchange,
    planned: ForwardPlan,
    context: OwnContext,
    at: number,
    verdict: Verdict,
  ): Pending {
    if (isRejection(verdict)) return exchange.refuse(verdict);
    if (isAnswer(verdict)) return exchange.answer(verdict);
    if (verdict?.observed !== undefined) exchange.observe(verdict.observed);
    if (verdict !== undefined && 'responseFields' in verdict)
      exchange.responseFields = verdict.responseFields;
    // Only hooks have `bufferLimit`.
    const hooks = verdict?.bufferLimit === undefined ? undefined : verdict;
    const { name, hooksUpstream } = (planned.filters[at] as PlannedFilter).filter;
    // `plan` puts a filter with hooks last: after a later refusal its hooks would never get an outcome.
    if (hooks !== undefined && hooksUpstream !== true)
      throw new TypeError(`${name} gives hooks, and does not say so`);
    if (at + 1 < planned.filters.length) return this.#runFilters(exchange, planned, context, at + 1);
    const { request, identity, body } = context;
    return this.#dependencies.forward(exchange, request, identity, body, hooks, planned.limits);
  }
}

import type { IncomingMessage } from 'node:http';
import type { Requirement } from '../access/protected-list.ts';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import type { FieldList } from '../http/field-list.ts';
import { type Answer, isAnswer, isRejection, type Rejection, type Sender } from '../http/rejection.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import { isolate } from '../lib/faults.ts';
import { beyondShare, type Place } from '../server/in-flight.ts';
import type { UpstreamHooks } from '../upstream/hooks.ts';
import type { Continue, Filter, FilterContext, Identity } from './filter.ts';
import {
  type ForwardPlan,
  type PlannedFilter,
  type PlanRules,
  plan,
  planForward,
  type RouteLimits,
} from './plan.ts';

/**
 * One request and its response, as the pipeline sees them: an exchange of HTTP, or the handshake of a WebSocket.
 * Exported for its tests.
 */
export interface PipelineExchange {
  readonly incoming: IncomingMessage;
  /** Its entry among all requests in progress. */
  readonly place: Pick<Place, 'takeFor' | 'takeForSubject'>;
  /** Template of the endpoint or row that decided. */
  route: string;
  /** The user of its verified token. */
  sender: Sender | undefined;
  /** Its answer needed a token: shared caches must not store it. */
  isPrivate: boolean;
  /** The token may be in a cookie. */
  variesByCookie: boolean;
  /** Further fields of its response. */
  responseFields: FieldList | undefined;
  /** The request was understood. */
  setRequest(request: CanonicalRequest): void;
  /** Notes a refusal that observe mode does not enforce. */
  observe(rejection: Rejection): void;
  refuse(rejection: Rejection): void;
  answer(answer: Answer): void;
  /** A bug or an impossible state. */
  fail(fault: unknown): void;
}

export interface PipelineDependencies<Exchange extends PipelineExchange> {
  canonicalise(incoming: IncomingMessage): CanonicalRequest | Rejection;
  readonly rules: PlanRules & { readonly accessToken: Filter<Requirement> };
  readBody(exchange: Exchange, request: CanonicalRequest, limits?: RouteLimits): Promise<Buffer | Rejection>;
  /** Forwards the request to the upstream. Every hook that is passed gets the outcome. */
  forward(
    exchange: Exchange,
    request: CanonicalRequest,
    identity: Identity | undefined,
    body?: Buffer,
    hooks?: UpstreamHooks,
    limits?: RouteLimits,
  ): Pending;
}

type Pending = Eventually<void> | undefined;
type Verdict = Continue | Answer | Rejection;
/** Its body is read when the first filter wants it. */
type OwnContext = FilterContext & { body: Buffer | undefined };

/** One request, one straight line: canonical request -> plan -> endpoint, or access token -> filters -> upstream. */
export class Pipeline<Exchange extends PipelineExchange> {
  readonly #dependencies: PipelineDependencies<Exchange>;

  constructor(dependencies: PipelineDependencies<Exchange>) {
    this.#dependencies = dependencies;
  }

  /** Ends the exchange; never throws. */
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
    const { rules } = this.#dependencies;
    const planned = planForward(request, rules);
    if (isRejection(planned)) return planned;
    const { token, isObserved, forward } = planned;
    if (token === 'none' || isObserved) return 'free';
    const context = { request: forward, identity: undefined, body: undefined, isObserved, isProven };
    const pending = rules.accessToken.run(token, context);
    return andThen(pending, (verdict) => (isRejection(verdict) ? verdict : 'admitted'));
  };

  /** Steps that need not wait are done in this call: most requests wait only for the upstream. */
  #handle(exchange: Exchange): Pending {
    const { canonicalise, rules } = this.#dependencies;
    const request = canonicalise(exchange.incoming);
    if (isRejection(request)) return exchange.refuse(request);
    // A refused target is recorded as it was sent.
    if (request.refusedTarget === undefined) exchange.setRequest(request);
    if (!exchange.place.takeFor(request.clientAddress)) return exchange.refuse(beyondShare);
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
    // A row that observes leaves answers as they are, unless its token may be where caches do not look for one.
    exchange.variesByCookie = tokenIn !== undefined || credentials === 'shop';
    exchange.isPrivate = exchange.variesByCookie || !planned.isObserved;
    return this.#authenticate(exchange, planned, planned.token);
  }

  #answerHere(exchange: Exchange, { filter, match }: PlannedFilter, request: CanonicalRequest): Pending {
    exchange.route = filter.route ?? '*';
    const pending = filter.run(match, { request, identity: undefined, body: undefined, isObserved: false });
    return andThen(pending, (verdict) => this.#respond(exchange, verdict, request));
  }

  /** If an endpoint has no answer, its request continues like any other, and the list applies to it. */
  #respond(exchange: Exchange, answer: Verdict, request: CanonicalRequest): Pending {
    if (isRejection(answer)) return exchange.refuse(answer);
    if (isAnswer(answer)) return exchange.answer(answer);
    const planned = planForward(request, this.#dependencies.rules);
    return isRejection(planned) ? exchange.refuse(planned) : this.#follow(exchange, planned);
  }

  /** A protected request passes only with a valid access token that has every required scope. */
  #authenticate(exchange: Exchange, planned: ForwardPlan, requirement: Requirement): Pending {
    const { forward: request, isObserved } = planned;
    const context = { request, identity: undefined, body: undefined, isObserved };
    const pending = this.#dependencies.rules.accessToken.run(requirement, context);
    return andThen(pending, (verdict) => this.#admit(exchange, planned, verdict));
  }

  #admit(exchange: Exchange, planned: ForwardPlan, verdict: Verdict): Pending {
    if (isRejection(verdict)) return exchange.refuse(verdict);
    if (isAnswer(verdict)) return exchange.answer(verdict);
    if (verdict !== undefined && 'identity' in verdict && verdict.identity !== undefined) {
      const { identity, request = planned.forward, observed } = verdict;
      if (observed !== undefined) exchange.observe(observed);
      exchange.sender = identity;
      if (!exchange.place.takeForSubject(identity.subject)) return exchange.refuse(beyondShare);
      return this.#pass(exchange, planned, request, identity);
    }
    if (verdict !== undefined && 'unjudged' in verdict)
      return this.#pass(exchange, planned, planned.forward, undefined);
    if (verdict?.observed === undefined) throw new TypeError('a token was neither good nor refused');
    exchange.observe(verdict.observed);
    return this.#pass(exchange, planned, planned.forward, undefined);
  }

  /** After the token: the filters, then the upstream. */
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

  /** Runs the filters from number `at` on. A result that a filter has at once is used in this call, without a promise. */
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
    const hooks = verdict?.bufferLimit === undefined ? undefined : hooksOf(planned, at, verdict);
    if (at + 1 < planned.filters.length) return this.#runFilters(exchange, planned, context, at + 1);
    const { request, identity, body } = context;
    return this.#dependencies.forward(exchange, request, identity, body, hooks, planned.limits);
  }
}

/** Only the last filter may have hooks, so that no later refusal keeps the outcome from it. */
function hooksOf({ filters }: ForwardPlan, at: number, hooks: UpstreamHooks): UpstreamHooks {
  const { name, hooksUpstream } = (filters[at] as PlannedFilter).filter;
  if (hooksUpstream !== true) throw new TypeError(`${name} gives hooks, and does not say so`);
  if (at + 1 < filters.length) throw new TypeError(`${name} gives hooks, and is not the last`);
  return hooks;
}

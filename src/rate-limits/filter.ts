import { createHmac } from 'node:crypto';
import type { Method } from '../http/canonical-request.ts';
import { buildPathTable, type PathRules } from '../http/path-table.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import type { Continue, Filter, Matcher } from '../proxy/filter.ts';
import type { Rate, Taken, TakeToken } from './buckets.ts';

/** A limit of one row: each client has a bucket of its own. */
export interface RateLimit extends Rate {
  readonly method: Exclude<Method, 'HEAD' | 'OPTIONS'> | 'ANY';
  readonly path: string;
  /** What would be refused goes on, and is counted. */
  readonly observe: boolean;
}

export type RateLimitMatcher = Matcher<RateLimit>;

/** What became of requests that a limit was asked for; stable words for metrics. */
export type RateLimitEvent = 'passed' | 'refused' | 'observed' | 'unavailable';

interface RateLimitOptions {
  readonly takeToken: TakeToken;
  /** What of an address is one client. */
  readonly networkOf: (address: string) => string;
  /** Keys the digests of clients; empty: anybody could make them. */
  readonly digestKey: string;
  readonly onEvent: (event: RateLimitEvent) => void;
}

/** Names a limit to people and in log, metrics and fields: `POST /access-tokens`. */
export function limitName({ method, path }: Pick<RateLimit, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/** Rows are matched as those of the protected list; of several that a request meets the first exact one counts. */
export function createRateLimitMatcher(limits: readonly RateLimit[], paths: PathRules): RateLimitMatcher {
  const rows = limits.map((data) => ({ method: data.method, template: data.path, data }));
  const table = buildPathTable(rows, paths);
  const isAny = limits.some(({ method }) => method === 'ANY');
  const methods = new Set<string>(limits.map(({ method }) => method));
  if (methods.has('GET')) methods.add('HEAD');
  return {
    name: 'rate-limits',
    match: (request) =>
      isAny || methods.has(request.method) || request.isFormPost ? table.match(request)[0]?.data : undefined,
    describe({ requests, perMs, observe }, _request, name) {
      const rate = `${requests} requests in ${perMs / 1000} s for each client`;
      const more = observe ? 'more are only counted' : `more are ${name('rate-limited')}`;
      return { label: 'rate limit', text: `${rate}; ${more}` };
    },
  };
}

/** Rejection: `rate-limited`. Where the store does not answer, requests pass. */
export function createRateLimits(
  matcher: RateLimitMatcher,
  { takeToken, networkOf, digestKey, onEvent }: RateLimitOptions,
): Filter<RateLimit> & RateLimitMatcher {
  const conclude = (limit: RateLimit, taken: Taken, isObserved: boolean): Continue | Rejection => {
    const isSoft = limit.observe || isObserved;
    onEvent(taken.isAllowed ? 'passed' : isSoft ? 'observed' : 'refused');
    if (taken.isAllowed) return isSoft ? undefined : { responseFields: rateFields(limit, taken) };
    const retryAfterSeconds = Math.max(1, secondsOf(taken.waitUs));
    const fields = isSoft ? [] : rateFields(limit, taken);
    const rejection = reject('rate-limited', { reason: limitName(limit), retryAfterSeconds, fields });
    return isSoft ? { observed: rejection } : rejection;
  };
  return {
    ...matcher,
    run(limit, context) {
      const client =
        context.identity === undefined
          ? `address ${networkOf(context.request.clientAddress)}`
          : `subject ${context.identity.subject}`;
      const bucket = bucketOf(limit, client, digestKey);
      const pass = () => void onEvent('unavailable');
      const taken = takeToken(bucket, limit);
      return taken instanceof Promise
        ? taken.then((late) => conclude(limit, late, context.isObserved), pass)
        : conclude(limit, taken, context.isObserved);
    },
  };
}

/** A keyed digest, so that neither address nor subject stands in the store. */
function bucketOf(limit: RateLimit, client: string, key: string): string {
  const name = limitName(limit);
  return createHmac('sha256', `rate limits ${key}`)
    .update(`${name.length}:${name}${client}`)
    .digest('base64url')
    .slice(0, 32);
}

/** `RateLimit` and `RateLimit-Policy`: draft-ietf-httpapi-ratelimit-headers-11. */
function rateFields(limit: RateLimit, { remaining, waitUs }: Taken): string[] {
  const name = `"${limitName(limit).replace(/["\\]/g, '\\$&')}"`;
  const policy = `${name};q=${limit.requests};w=${Math.ceil(limit.perMs / 1000)}`;
  return ['RateLimit-Policy', policy, 'RateLimit', `${name};r=${remaining};t=${secondsOf(waitUs)}`];
}

function secondsOf(us: number): number {
  return Math.ceil(us / 1_000_000);
}

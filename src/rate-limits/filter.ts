import { createHmac } from 'node:crypto';
import type { CanonicalRequest, Method } from '../http/canonical-request.ts';
import { networkOf } from '../http/peer.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import type { Continue, Filter, Matcher } from '../proxy/filter.ts';
import { endpointRows, reachOf } from '../routes/endpoint-rows.ts';
import { buildPathTable, type PathRules } from '../routes/path-table.ts';
import type { Rate, Taken, TakeToken } from './buckets.ts';

/** A limit of one row: each client has a bucket of its own. */
export interface RateLimit extends Rate {
  readonly method: Exclude<Method, 'HEAD' | 'OPTIONS'> | 'ANY';
  readonly path: string;
  /** Requests beyond the limit are forwarded and counted. */
  readonly observe: boolean;
  /** Limit of a token endpoint. It counts every request that a shop may route to it: any method, any longer path. */
  readonly isEndpoint?: boolean;
}

/** All limits that a request meets, in the order of the configuration. */
export interface RateLimitMatcher extends Matcher<readonly RateLimit[]> {
  readonly isOff: boolean;
}

/** The outcome of a request by one limit; fixed words for metrics. Exported for its tests. */
export type RateLimitEvent = 'passed' | 'refused' | 'observed' | 'unavailable';

interface RateLimitOptions {
  readonly takeToken: TakeToken;
  /** Key of the clients' digests; if it is empty, anybody can compute them. */
  readonly digestKey: string;
  readonly onEvent: (event: RateLimitEvent) => void;
}

/** The name of a limit for people, log, metrics and fields: `POST /access-tokens`. */
export function limitName({ method, path }: Pick<RateLimit, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/**
 * Rows are matched like those of the protected list. All limits that a request meets count, so that no other spelling and no
 * wider row avoids a narrow limit.
 */
export function createRateLimitMatcher(limits: readonly RateLimit[], paths: PathRules): RateLimitMatcher {
  const rows = limits.flatMap((data) =>
    data.isEndpoint === true
      ? endpointRows(data.path, data)
      : [{ method: data.method, template: data.path, data }],
  );
  const table = buildPathTable(rows, paths);
  const applies = ({ isEndpoint, method }: RateLimit, request: CanonicalRequest) =>
    isEndpoint !== true || method === 'ANY' || reachOf(request, method) !== undefined;
  return {
    name: 'rate-limits',
    isOff: limits.length === 0,
    skipsPlainReads: limits.every(
      ({ isEndpoint, method }) => isEndpoint === true && method !== 'ANY' && method !== 'GET',
    ),
    match(request) {
      const met = new Set<RateLimit>();
      for (const { data } of table.match(request)) if (applies(data, request)) met.add(data);
      return met.size === 0 ? undefined : [...met];
    },
    describe: (met, _request, name) => ({
      label: 'rate limit',
      text: met
        .map((limit) => {
          const named = met.length === 1 ? '' : `${limitName(limit)}: `;
          return `${named}${describeLimit(limit, name('rate-limited'))}`;
        })
        .join('; '),
    }),
  };
}

function describeLimit(limit: RateLimit, refusal: string): string {
  const rate = `${limit.requests} requests in ${limit.perMs / 1000} s for each client`;
  return `${rate}; ${limit.observe ? 'more are only counted' : `more are ${refusal}`}`;
}

/** The outcome of one request by one limit; `taken` is undefined if the store did not answer. */
interface Asked {
  readonly limit: RateLimit;
  readonly taken: Taken | undefined;
}

/** Rejection: `rate-limited`. If the store does not answer, requests pass. */
export function createRateLimits(
  matcher: RateLimitMatcher,
  { takeToken, digestKey, onEvent }: RateLimitOptions,
): Filter<readonly RateLimit[]> & RateLimitMatcher {
  const conclude = (asked: readonly Asked[], isObserved: boolean): Continue | Rejection => {
    const isSoft = ({ limit }: Asked) => limit.observe || isObserved;
    for (const one of asked) onEvent(eventOf(one, isSoft(one)));
    const hard = asked.filter((one) => !isSoft(one));
    const refused = slowest(hard);
    const fields = rateFields(hard);
    if (refused !== undefined) return refuse(refused, fields);
    const observed = slowest(asked);
    const noted = observed && refuse(observed, []);
    if (fields.length === 0) return noted && { observed: noted };
    return { responseFields: fields, ...(noted && { observed: noted }) };
  };
  return {
    ...matcher,
    run(limits, { request, identity, isObserved }) {
      const client =
        identity === undefined
          ? `address ${networkOf(request.clientAddress)}`
          : `subject ${identity.subject}`;
      const asked = limits.map((limit) => {
        const taken = takeToken(bucketOf(limit, client, digestKey), limit);
        return taken instanceof Promise
          ? taken.catch(() => undefined).then((late): Asked => ({ limit, taken: late }))
          : { limit, taken };
      });
      return asked.some((one) => one instanceof Promise)
        ? Promise.all(asked).then((all) => conclude(all, isObserved))
        : conclude(asked as Asked[], isObserved);
    },
  };
}

function eventOf({ taken }: Asked, isSoft: boolean): RateLimitEvent {
  if (taken === undefined) return 'unavailable';
  if (taken.isAllowed) return 'passed';
  return isSoft ? 'observed' : 'refused';
}

/** The refusing limit with the longest wait. */
function slowest(asked: readonly Asked[]): Asked | undefined {
  let found: Asked | undefined;
  for (const one of asked) {
    const { taken } = one;
    if (taken === undefined || taken.isAllowed) continue;
    if (found?.taken === undefined || taken.waitUs > found.taken.waitUs) found = one;
  }
  return found;
}

function refuse({ limit, taken }: Asked, fields: string[]): Rejection {
  const retryAfterSeconds = Math.max(1, secondsOf(taken?.waitUs ?? 0));
  return reject('rate-limited', { reason: limitName(limit), retryAfterSeconds, fields });
}

/**
 * A keyed digest, so that the store contains neither address nor subject. The rate is part of it: replicas with different rates, as
 * during a rollout, would otherwise correct one another's times, and a client that alternates between them would always pass.
 */
function bucketOf(limit: RateLimit, client: string, key: string): string {
  const name = `${limitName(limit)} ${limit.requests}/${limit.perMs}`;
  return createHmac('sha256', `rate limits ${key}`)
    .update(`${name.length}:${name}${client}`)
    .digest('base64url')
    .slice(0, 32);
}

/** `RateLimit` and `RateLimit-Policy`, with a member for each limit: draft-ietf-httpapi-ratelimit-headers-11. */
function rateFields(asked: readonly Asked[]): string[] {
  const policies: string[] = [];
  const limits: string[] = [];
  for (const { limit, taken } of asked) {
    if (taken === undefined) continue;
    // A string of RFC 9651: paths of rows contain neither quotes nor backslashes.
    const name = `"${limitName(limit)}"`;
    policies.push(`${name};q=${limit.requests};w=${Math.ceil(limit.perMs / 1000)}`);
    limits.push(`${name};r=${taken.remaining};t=${secondsOf(taken.waitUs)}`);
  }
  return policies.length === 0
    ? []
    : ['RateLimit-Policy', policies.join(', '), 'RateLimit', limits.join(', ')];
}

function secondsOf(us: number): number {
  return Math.ceil(us / 1_000_000);
}

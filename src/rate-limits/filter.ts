import { createHmac } from 'node:crypto';
import type { CanonicalRequest, Method } from '../http/canonical-request.ts';
import { type Rejection, reject } from '../http/rejection.ts';
import type { Continue, Filter, Matcher } from '../proxy/filter.ts';
import { endpointRows, reachOf } from '../routes/endpoint-rows.ts';
import { buildPathTable, type PathRules } from '../routes/path-table.ts';
import type { Rate, TakeToken } from './buckets.ts';

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
  /** The part of an address that counts as one client. */
  readonly networkOf: (address: string) => string;
  /** Key of the clients' digests; if it is empty, anybody can compute them. */
  readonly digestKey: string;
  readonly onEvent: (event: RateLimitEvent) => void;
}

/** The name of a limit for people, log, metrics and fields: `POST /access-tokens`. */
export function limitName({ method, path }: Pick<RateLimit, 'method' | 'path'>): string {
  return `${method} ${path}`;
}

/**
 * Rows are matched like those of the protected list. All limits that a request meets count, so that neither another spelling nor a
 * wider row avoids a narrow one.
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

/** A limit and how long the client must wait; 0: not at all; undefined: the store did not answer. */
interface Asked {
  readonly limit: RateLimit;
  readonly waitUs: number | undefined;
}

/** Rejection: `rate-limited`. If the store does not answer, requests pass. */
export function createRateLimits(
  matcher: RateLimitMatcher,
  { takeToken, networkOf, digestKey, onEvent }: RateLimitOptions,
): Filter<readonly RateLimit[]> & RateLimitMatcher {
  const conclude = (asked: readonly Asked[], isObserved: boolean): Continue | Rejection => {
    const isSoft = ({ limit }: Asked) => limit.observe || isObserved;
    for (const one of asked) onEvent(eventOf(one, isSoft(one)));
    const refused = refusalOf(asked.filter((one) => !isSoft(one)));
    if (refused !== undefined) return refused;
    const observed = refusalOf(asked);
    return observed && { observed };
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
          ? taken.then(
              (waitUs): Asked => ({ limit, waitUs }),
              (): Asked => ({ limit, waitUs: undefined }),
            )
          : { limit, waitUs: taken };
      });
      return asked.some((one) => one instanceof Promise)
        ? Promise.all(asked).then((all) => conclude(all, isObserved))
        : conclude(asked as Asked[], isObserved);
    },
  };
}

function eventOf({ waitUs }: Asked, isSoft: boolean): RateLimitEvent {
  if (waitUs === undefined) return 'unavailable';
  if (waitUs === 0) return 'passed';
  return isSoft ? 'observed' : 'refused';
}

/** The refusal of the limit with the longest wait; undefined: none refuses. */
function refusalOf(asked: readonly Asked[]): Rejection | undefined {
  let slowest: RateLimit | undefined;
  let longestUs = 0;
  for (const { limit, waitUs = 0 } of asked) {
    if (waitUs <= longestUs) continue;
    slowest = limit;
    longestUs = waitUs;
  }
  const retryAfterSeconds = Math.ceil(longestUs / 1_000_000);
  return slowest && reject('rate-limited', { reason: limitName(slowest), retryAfterSeconds });
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

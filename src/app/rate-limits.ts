import type { Config, PartialConfig } from '../config/schema.ts';
import { healthOf } from '../lib/component.ts';
import { createMemoryBuckets, createRedisBuckets } from '../rate-limits/buckets.ts';
import {
  createRateLimitMatcher,
  createRateLimits,
  limitName,
  type RateLimit,
  type RateLimitMatcher,
} from '../rate-limits/filter.ts';
import type { FilterDefinition } from './filter-definition.ts';

/** Milliseconds for which `/readyz` reports that the store could not count. */
const unavailableForMs = 10_000;

/** Token buckets by client and limit, kept in Redis or, without one, in memory. */
export const rateLimitsDefinition: FilterDefinition<RateLimitMatcher> = {
  name: 'rate-limits',
  title: 'Rate limits',
  stage: 'forward',
  compile: compileLimits,
  create(matcher, { config, redis, metrics }) {
    let unavailableAtMs = Number.NEGATIVE_INFINITY;
    const { refreshTokens } = config;
    const filter = createRateLimits(matcher, {
      takeToken: redis ? createRedisBuckets(redis.redis, config.store.prefix) : createMemoryBuckets(),
      digestKey: (refreshTokens === false ? undefined : refreshTokens.digestKey) ?? '',
      onEvent(event) {
        metrics.countEvent('rate-limits', event);
        if (event === 'unavailable') unavailableAtMs = performance.now();
      },
    });
    return Object.assign(filter, {
      useSettings(changed: Config) {
        Object.assign(filter, compileLimits(changed));
      },
      health() {
        if (filter.isOff) return { status: 'off', reasons: [], text: 'switched off' };
        const isAway = performance.now() - unavailableAtMs < unavailableForMs;
        const reasons = isAway ? ['rate limits: the store does not count, every request passes'] : [];
        const details = metrics.eventDetails('rate-limits');
        return healthOf(reasons, {
          text: reasons[0] ?? (details.length === 0 ? 'nothing seen yet' : 'requests are counted by client'),
          details,
        });
      },
    });
  },
};

/** Never undefined: limits may be switched on in a running proxy. */
function compileLimits(config: PartialConfig): RateLimitMatcher {
  return createRateLimitMatcher(limitsOf(config), config.request ?? { ignoredPrefixes: [] });
}

function limitsOf({ rateLimits, refreshTokens }: PartialConfig): RateLimit[] {
  if (!rateLimits) return [];
  const endpoints = new Map(
    (refreshTokens ? refreshTokens.endpoints : []).flatMap(({ kind, method, path }) =>
      kind === 'revoke' ? [] : [[limitName({ method, path }), { method, path }]],
    ),
  );
  const { rows, tokenEndpoints } = rateLimits;
  const named = new Set(rows.map(limitName));
  const others = [...endpoints].flatMap(([name, endpoint]) =>
    tokenEndpoints && !named.has(name) ? { ...endpoint, ...tokenEndpoints } : [],
  );
  return [...rows, ...others].map(({ per, mode, ...row }) => ({
    ...row,
    perMs: per,
    observe: mode === 'observe',
    isEndpoint: endpoints.has(limitName(row)),
  }));
}

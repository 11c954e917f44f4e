import type { Config } from '../config/schema.ts';
import { gauge, healthOf } from '../lib/component.ts';
import type { Filter } from '../proxy/filter.ts';
import type { RedisCalls } from '../redis/redis.ts';
import { createAccessTokenSubject } from '../refresh-tokens/context.ts';
import type { TokenRequest } from '../refresh-tokens/endpoints.ts';
import { createRefreshTokens, createTokenMatcher, type TokenMatcher } from '../refresh-tokens/filter.ts';
import { MemoryTokenStore } from '../refresh-tokens/memory-store.ts';
import { RedisTokenStore } from '../refresh-tokens/redis-store.ts';
import type { FilterDefinition } from './filter-definition.ts';
import { createShopSubject } from './issuers.ts';

/** The life cycle of refresh tokens, kept in Redis or, without one, in memory. */
export const refreshTokensDefinition: FilterDefinition<TokenMatcher, Filter<TokenRequest>> = {
  name: 'refresh-tokens',
  title: 'Refresh tokens',
  stage: 'forward',
  compile({ refreshTokens, request = { ignoredPrefixes: [] } }) {
    return refreshTokens ? createTokenMatcher(refreshTokens.endpoints, request) : undefined;
  },
  create(matcher, { config, redis, metrics }) {
    const settings = config.refreshTokens;
    if (settings === false) throw new TypeError('refreshTokens is off');
    const times = { lifetimeMs: settings.lifetime, retentionMs: settings.retention };
    const store = redis
      ? sharedTokens(settings, config.store, redis.forTokens)
      : new MemoryTokenStore({ ...times, onEvict: () => metrics.countEvent('refresh-tokens', 'evicted') });
    const filter = createRefreshTokens(matcher, {
      store,
      subjectOf: createAccessTokenSubject(createShopSubject(config.auth)),
      lifetimeMs: settings.lifetime,
      answerWithinMs: config.upstream.responseTimeout,
      shopTimeoutMs: settings.shopTimeout,
      replay: settings.replay,
      leewayMs: settings.leeway,
      digestKey: settings.digestKey,
      onEvent: (event) => metrics.countEvent('refresh-tokens', event),
    });
    return {
      ...filter,
      health() {
        const delayedWrites = filter.delayedWrites();
        const states = `${delayedWrites} state${delayedWrites === 1 ? '' : 's'}`;
        const reasons = delayedWrites === 0 ? [] : [`refresh tokens: ${states} wait for the store`];
        const details = metrics.eventDetails('refresh-tokens');
        return healthOf(reasons, {
          text: reasons[0] ?? (details.length === 0 ? 'nothing seen yet' : 'the life cycle is followed'),
          details,
        });
      },
      metrics: [
        gauge(
          'shopward_refresh_token_delayed_writes',
          'States of refresh tokens that wait for the store to come back.',
          'sum',
          filter.delayedWrites,
        ),
      ],
      close: async () => void (await filter.close()),
    };
  },
};

/** The refresh tokens of all replicas, for the proxy and for `shopward tokens`. */
export function sharedTokens(
  { lifetime, retention }: Exclude<Config['refreshTokens'], false>,
  { prefix, replicas }: Config['store'],
  redis: RedisCalls,
): RedisTokenStore {
  const times = { lifetimeMs: lifetime, retentionMs: retention };
  return new RedisTokenStore({ ...times, redis, keyPrefix: prefix, replicas });
}

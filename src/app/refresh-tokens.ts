import { createSubjectReader } from '../access/token-claims.ts';
import type { Config } from '../config/schema.ts';
import type { Gate } from '../proxy/pipeline.ts';
import type { Redis } from '../redis/redis.ts';
import { createAccessTokenSubject } from '../refresh-tokens/context.ts';
import { createRefreshTokens } from '../refresh-tokens/filter.ts';
import { MemoryTokenStore } from '../refresh-tokens/memory-store.ts';
import { RedisTokenStore } from '../refresh-tokens/redis-store.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Part } from './part.ts';

export interface RefreshTokensPart extends Part {
  readonly gate: Gate;
}

/** The life cycle of refresh tokens; their store is Redis where there is one. */
export function createRefreshTokensPart(
  config: Config,
  redis: Redis | undefined,
  metrics: Metrics,
): RefreshTokensPart {
  const settings = config.refreshTokens;
  if (settings === false) throw new TypeError('refreshTokens is off');
  const times = { lifetimeMs: settings.lifetime, retentionMs: settings.retention };
  const memory = redis
    ? undefined
    : new MemoryTokenStore({ ...times, onEvict: () => metrics.countEvent('refresh-tokens', 'evicted') });
  const store =
    memory ??
    new RedisTokenStore({
      ...times,
      redis: redis as Redis,
      keyPrefix: config.store.prefix,
      replicas: config.store.replicas,
    });
  const gate = createRefreshTokens({
    endpoints: settings.endpoints,
    paths: config.request,
    store,
    subjectOf: createAccessTokenSubject(createSubjectReader(config.auth.subject)),
    lifetimeMs: settings.lifetime,
    answerWithinMs: config.upstream.responseTimeout,
    claimMs: Math.max(2000, 3 * config.store.timeout),
    replay: settings.replay,
    leewayMs: settings.leeway,
    digestKey: settings.digestKey,
    onEvent: (event) => metrics.countEvent('refresh-tokens', event),
  });
  metrics.registerGauge({
    name: 'shopward_refresh_token_delayed_writes',
    help: 'States of refresh tokens that wait for the store to come back.',
    value: () => gate.stats().delayedWrites,
  });
  if (memory !== undefined) {
    metrics.registerGauge({
      name: 'shopward_refresh_token_records',
      help: 'Refresh tokens in memory.',
      value: () => memory.size,
    });
    metrics.registerGauge({
      name: 'shopward_refresh_token_stray_records',
      help: 'Claims and notes in memory about tokens that may not exist.',
      value: () => memory.strays,
    });
  }
  return {
    gate,
    reasons() {
      const { delayedWrites } = gate.stats();
      return delayedWrites === 0
        ? []
        : [`refresh tokens: ${delayedWrites} state${delayedWrites === 1 ? '' : 's'} wait for the store`];
    },
    close: async () => void (await gate.close()),
  };
}

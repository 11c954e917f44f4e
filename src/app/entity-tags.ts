import type { Config } from '../config/schema.ts';
import { createEntityTags } from '../entity-tags/entity-tags.ts';
import { createMemoryTagStore } from '../entity-tags/memory-store.ts';
import { createRedisTagStore } from '../entity-tags/redis-store.ts';
import { entityTagTimes } from '../entity-tags/times.ts';
import type { Gate } from '../pipeline.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Part } from './part.ts';
import type { RedisPart } from './redis.ts';

export interface EntityTagsPart extends Part {
  readonly gate: Gate;
}

/** Entity tags in front of the configured resources; their store is Redis where there is one. */
export function createEntityTagsPart(
  config: Config,
  redis: RedisPart | undefined,
  metrics: Metrics,
): EntityTagsPart {
  const settings = config.entityTags;
  if (settings === false) throw new TypeError('entityTags is off');
  const times = entityTagTimes({
    leaseMs: settings.lease,
    sendByMs: settings.sendBy,
    storeTimeoutMs: config.store.timeout,
    responseTimeoutMs: config.upstream.responseTimeout,
  });
  if ('problem' in times) throw new TypeError(times.problem);
  const store = redis
    ? createRedisTagStore({ redis: redis.redis, times, replicas: config.store.replicas })
    : createMemoryTagStore({ times });
  const gate = createEntityTags({
    resources: settings.resources.map(({ freshFor, ...resource }) => ({ ...resource, freshForMs: freshFor })),
    store,
    times,
    waitMs: settings.wait,
    trackedResponseBytes: config.limits.trackedResponse,
    ignoredPrefixes: config.request.ignoredPrefixes,
    now: Date.now,
    onEvent: (event) => metrics.countEvent('entity-tags', event),
  });
  /** Until then the store is new, or was never reached: it hands out no tag. */
  let heldUntilMs = redis === undefined ? 0 : Number.POSITIVE_INFINITY;
  const warmUp = () =>
    store.warmUp().then(
      (holdMs) => {
        heldUntilMs = Date.now() + holdMs;
      },
      () => {},
    );
  redis?.onReady(() => void warmUp());
  return {
    gate,
    start: warmUp,
    reasons: () =>
      Date.now() < heldUntilMs
        ? ['entity tags: no tag is handed out yet, the store is new or was not reached']
        : [],
    close: () => store.close(),
  };
}

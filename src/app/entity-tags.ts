import type { Config } from '../config/schema.ts';
import { createEntityTags } from '../entity-tags/entity-tags.ts';
import { createMemoryTagStore } from '../entity-tags/memory-store.ts';
import { createRedisTagStore } from '../entity-tags/redis-store.ts';
import { entityTagTimes } from '../entity-tags/times.ts';
import type { Gate } from '../pipeline.ts';
import type { Redis } from '../redis/redis.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Part } from './part.ts';

export interface EntityTagsPart extends Part {
  readonly gate: Gate;
}

/** Entity tags in front of the configured resources; their store is Redis where there is one. */
export function createEntityTagsPart(
  config: Config,
  redis: Redis | undefined,
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
    ? createRedisTagStore({ redis, times, replicas: config.store.replicas })
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
  let isWarm = redis === undefined;
  return {
    gate,
    async start() {
      // A hold of a new store begins to count at once, not with the first write.
      store.warmUp().then(
        () => {
          isWarm = true;
        },
        () => {},
      );
    },
    reasons: () => (isWarm ? [] : ['entity tags: the store is new or away; no tag is handed out yet']),
    close: () => store.close(),
  };
}

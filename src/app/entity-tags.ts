import {
  createEntityTagMatcher,
  createEntityTags,
  type EntityTagMatcher,
  type EntityTags,
} from '../entity-tags/filter.ts';
import { MemoryTagStore } from '../entity-tags/memory-store.ts';
import { RedisTagStore } from '../entity-tags/redis-store.ts';
import { entityTagTimes } from '../entity-tags/times.ts';
import { type Component, healthOf } from '../lib/component.ts';
import type { FilterDefinition, FilterDependencies } from './filter-definition.ts';

/** Entity tags in front of the configured resources; their store is Redis where there is one. */
export const entityTagsDefinition: FilterDefinition<EntityTagMatcher, EntityTags & Component> = {
  name: 'entity-tags',
  stage: 'forward',
  compile({ entityTags, request = { ignoredPrefixes: [] } }) {
    if (!entityTags) return undefined;
    const resources = entityTags.resources.map(({ freshFor, ...more }) => ({
      ...more,
      freshForMs: freshFor,
    }));
    return createEntityTagMatcher({ resources, paths: request });
  },
  create: createEntityTagsFilter,
};

/** What a script can tell: its node's replication id is another one. */
const unknownChange =
  'its data is not that of before (a failover, a restart, or slots of a Cluster were moved)';

/** Ends of cold starts that are this close are one end, heard over connections of different speed. */
const sameEndMs = 1_000;

function createEntityTagsFilter(
  matcher: EntityTagMatcher,
  { config, redis, log, metrics }: FilterDependencies,
): EntityTags & Component {
  const settings = config.entityTags;
  if (settings === false) throw new TypeError('entityTags is off');
  const times = entityTagTimes({
    leaseMs: settings.lease,
    sendByMs: settings.sendBy,
    storeTimeoutMs: config.store.timeout,
    responseTimeoutMs: config.upstream.responseTimeout,
  });
  if ('problem' in times) throw new TypeError(times.problem);
  let isWarming = false;
  let why = 'it was not reached before';
  let toldUntilMs = 0;
  /** Several connections hear of one failover: a cold start is told once, one that ends later is another. */
  const logColdStart = (coldStartMs: number) => {
    const untilMs = performance.now() + coldStartMs;
    if (untilMs < toldUntilMs + sameEndMs) return;
    toldUntilMs = untilMs;
    const seconds = Math.ceil(coldStartMs / 1000);
    log.warn({ event: 'hold', seconds, why }, `no tag is handed out for ${seconds} s: Redis: ${why}`);
  };
  /** A script met other data before anybody was told why: of a Cluster, or before Redis's state was looked at. */
  const onColdStart = (coldStartMs: number) => {
    if (isWarming) return;
    why = unknownChange;
    logColdStart(coldStartMs);
  };
  const store = redis
    ? new RedisTagStore({
        redis: redis.forTags,
        times,
        coldStartMs: redis.coldStartMs,
        onColdStart,
        keyPrefix: config.store.prefix,
        replicas: config.store.replicas,
      })
    : new MemoryTagStore({ times });
  const filter = createEntityTags(matcher, {
    store,
    times,
    waitMs: settings.wait,
    trackedResponseBytes: config.limits.trackedResponse,
    now: Date.now,
    onEvent: (event) => metrics.countEvent('entity-tags', event),
  });
  /** Until the store was reached nobody knows whether it is a new one. */
  let isReached = redis === undefined;
  const coldStartSeconds = () => Math.ceil(store.coldStartLeftMs() / 1000);
  const warmUp = async () => {
    isWarming = true;
    const coldStartMs = await store.warmUp().finally(() => {
      isWarming = false;
    });
    isReached = true;
    if (coldStartMs > 0) logColdStart(coldStartMs);
  };
  redis?.onNewData((reason) => {
    why = reason;
    warmUp().catch(() => {});
  });
  return {
    ...filter,
    start: () => warmUp().catch(() => {}),
    health() {
      if (!isReached) return healthOf(['entity tags: no tag is handed out, the store was not reached yet']);
      const seconds = coldStartSeconds();
      const text = `no tag is handed out yet and tracked writes get 503, for ${seconds} s more: Redis: ${why}`;
      return healthOf(seconds === 0 ? [] : [`entity tags: ${text}`]);
    },
    metrics: [
      {
        name: 'shopward_entity_tags_hold_seconds',
        help: 'Time for which no tag is handed out yet, since the store is new; 0: none.',
        kind: 'gauge',
        combine: 'max',
        value: coldStartSeconds,
      },
    ],
    close: () => store.close(),
  };
}

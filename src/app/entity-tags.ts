import {
  createEntityTagMatcher,
  createEntityTags,
  type EntityTagMatcher,
  type EntityTags,
} from '../entity-tags/filter.ts';
import { MemoryTagStore } from '../entity-tags/memory-store.ts';
import { RedisTagStore } from '../entity-tags/redis-store.ts';
import { entityTagTimes } from '../entity-tags/times.ts';
import { type Component, gauge, healthOf } from '../lib/component.ts';
import type { Log } from '../telemetry/log.ts';
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
    return createEntityTagMatcher(resources, request);
  },
  create: createEntityTagsFilter,
};

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
  const coldStart = new ColdStart(log);
  const store = redis
    ? new RedisTagStore({
        redis: redis.forTags,
        times,
        coldStartMs: redis.coldStartMs,
        onColdStart: (coldStartMs) => coldStart.onUnexplained(coldStartMs),
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
  const coldStartSeconds = () => Math.ceil(store.coldStartLeftMs() / 1000);
  const warmUp = () => coldStart.warmUp(store).catch(() => {});
  redis?.onNewData((reason) => {
    coldStart.why = reason;
    void warmUp();
  });
  return {
    ...filter,
    start: warmUp,
    health() {
      // Until the store was reached nobody knows whether it is a new one.
      if (redis !== undefined && !coldStart.isStoreReached)
        return healthOf(['entity tags: no tag is handed out, the store was not reached yet']);
      const seconds = coldStartSeconds();
      const text = `no tag is handed out yet and tracked writes get 503, for ${seconds} s more: Redis: ${coldStart.why}`;
      return healthOf(seconds === 0 ? [] : [`entity tags: ${text}`]);
    },
    metrics: [
      gauge(
        'shopward_entity_tags_hold_seconds',
        'Time for which no tag is handed out yet, since the store is new; 0: none.',
        'max',
        coldStartSeconds,
      ),
    ],
    close: () => store.close(),
  };
}

/** What a script can tell: its node's replication id is another one. */
const unknownChange =
  'its data is not that of before (a failover, a restart, or slots of a Cluster were moved)';

/** Ends of cold starts that are this close are one end, heard over connections of different speed. */
const sameEndMs = 1_000;

/** Why a new store hands out nothing, told once, however many hear of it. */
class ColdStart {
  why = 'it was not reached before';
  isStoreReached = false;
  readonly #log: Log;
  #isWarming = false;
  #toldUntilMs = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  async warmUp(store: RedisTagStore | MemoryTagStore): Promise<void> {
    this.#isWarming = true;
    const coldStartMs = await store.warmUp().finally(() => {
      this.#isWarming = false;
    });
    this.isStoreReached = true;
    if (coldStartMs > 0) this.#tell(coldStartMs);
  }

  /** A script met other data before anybody was told why: of a Cluster, or before Redis's state was looked at. */
  onUnexplained(coldStartMs: number): void {
    if (this.#isWarming) return;
    this.why = unknownChange;
    this.#tell(coldStartMs);
  }

  /** Several connections hear of one failover: a cold start is told once, one that ends later is another. */
  #tell(coldStartMs: number): void {
    const untilMs = performance.now() + coldStartMs;
    if (untilMs < this.#toldUntilMs + sameEndMs) return;
    this.#toldUntilMs = untilMs;
    const seconds = Math.ceil(coldStartMs / 1000);
    this.#log.warn(
      { event: 'hold', seconds, why: this.why },
      `no tag is handed out for ${seconds} s: Redis: ${this.why}`,
    );
  }
}

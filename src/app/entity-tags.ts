import type { Config } from '../config/schema.ts';
import { AnonymousRecords } from '../entity-tags/anonymous-records.ts';
import {
  createEntityTagMatcher,
  createEntityTags,
  type EntityTagMatcher,
  type EntityTags,
} from '../entity-tags/filter.ts';
import { buildTagScripts } from '../entity-tags/lua.ts';
import { MemoryTagStore } from '../entity-tags/memory-store.ts';
import { RedisTagStore } from '../entity-tags/redis-store.ts';
import { type EntityTagTimes, entityTagTimes } from '../entity-tags/times.ts';
import { type Component, gauge, healthOf } from '../lib/component.ts';
import { isolateLate } from '../lib/faults.ts';
import type { RedisStore } from '../redis/store.ts';
import { networkOf } from '../server/in-flight.ts';
import type { Log } from '../telemetry/log.ts';
import type { FilterDefinition, FilterDependencies } from './filter-definition.ts';
import { trackedLine } from './store.ts';

/** Entity tags of the configured resources, kept in Redis or, without one, in memory. */
export const entityTagsDefinition: FilterDefinition<EntityTagMatcher, EntityTags & Component> = {
  name: 'entity-tags',
  title: 'Entity tags',
  stage: 'forward',
  compile({ entityTags, request = { ignoredPrefixes: [] } }) {
    if (!entityTags) return undefined;
    return createEntityTagMatcher(entityTags.resources, request);
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
  const store = createStore(config.store, redis, times, coldStart);
  const filter = createEntityTags(matcher, {
    store,
    ...(redis && { isUntracked: (resource) => redis.isUntracked(trackedLine(resource)) }),
    times,
    anonymousRecords: new AnonymousRecords({ most: settings.anonymousRecords, clientOf: networkOf }),
    waitMs: settings.wait,
    trackedResponseBytes: config.limits.trackedResponse,
    now: Date.now,
    onEvent: (event) => metrics.countEvent('entity-tags', event),
  });
  const coldStartSeconds = () => Math.ceil(store.coldStartLeftMs() / 1000);
  const warmUp = () => coldStart.warmUp(store).catch(() => {});
  redis?.onNewData((reason) => {
    coldStart.why = reason;
    isolateLate(warmUp());
  });
  return {
    ...filter,
    start: warmUp,
    health() {
      const more = { details: metrics.eventDetails('entity-tags') };
      const text = coldStart.whyNoTags(coldStartSeconds(), redis !== undefined);
      const reasons = text === undefined ? [] : [`entity tags: ${text}`];
      if (redis !== undefined && redis.redis.state().status !== 'ready') {
        const away = 'reads go on without tags, writes to tagged resources get 503';
        return { ...more, status: 'degraded', reasons, text: away };
      }
      return healthOf(reasons, { ...more, text: text ?? 'tags are tracked' });
    },
    metrics: [
      gauge(
        'shopward_entity_tags_hold_seconds',
        'Time for which no tag is handed out yet, since the store is new; 0: none.',
        'max',
        coldStartSeconds,
      ),
    ],
  };
}

function createStore(
  { prefix, replicas }: Config['store'],
  redis: RedisStore | undefined,
  times: EntityTagTimes,
  coldStart: ColdStart,
): RedisTagStore | MemoryTagStore {
  if (redis === undefined) return new MemoryTagStore({ times });
  return new RedisTagStore({
    redis: redis.forTags,
    times,
    coldStartMs: redis.coldStartMs,
    form: redis.form,
    scripts: buildTagScripts(undefined, redis.forms),
    onColdStart: (coldStartMs) => coldStart.onUnexplained(coldStartMs),
    keyPrefix: prefix,
    replicas,
  });
}

/** The most that a script can notice: the replication id of its node has changed. */
const unknownChange =
  'its data is not that of before (a failover, a restart, or slots of a Cluster were moved)';

/** Cold starts whose ends differ by less than this are the same one, seen over connections of different speed. */
const sameEndMs = 1_000;

/** Why no tag is handed out, and the one log line about it. */
class ColdStart {
  why = 'it was not reached before';
  isStoreReached = false;
  readonly #log: Log;
  #isWarming = false;
  #toldUntilMs = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Undefined: tags are handed out. */
  whyNoTags(secondsLeft: number, isShared: boolean): string | undefined {
    // Until the store was reached, it may be a new one.
    if (isShared && !this.isStoreReached) return 'no tag is handed out, the store was not reached yet';
    if (secondsLeft === 0) return undefined;
    return `no tag is handed out yet and tracked writes get 503, for ${secondsLeft} s more: Redis: ${this.why}`;
  }

  async warmUp(store: RedisTagStore | MemoryTagStore): Promise<void> {
    this.#isWarming = true;
    const coldStartMs = await store.warmUp().finally(() => {
      this.#isWarming = false;
    });
    this.isStoreReached = true;
    if (coldStartMs > 0) this.#tell(coldStartMs);
  }

  /** A script found other data before another sign explained it: in a Cluster, or before INFO was read. */
  onUnexplained(coldStartMs: number): void {
    if (this.#isWarming) return;
    this.why = unknownChange;
    this.#tell(coldStartMs);
  }

  /** Several connections notice one failover: its cold start is logged once, and again only if the end moves later. */
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

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
import type { Log } from '../telemetry/log.ts';
import type { FilterDefinition } from './filter-definition.ts';
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
  create(matcher, { config, redis, log, metrics }) {
    const settings = config.entityTags;
    if (settings === false) throw new TypeError('entityTags is off');
    const times = entityTagTimes({ ...config.upstream, ...settings, storeTimeout: config.store.timeout });
    if (times === undefined) throw new TypeError('entityTags.lease is too short');
    const store = createStore(config.store, redis, times, log);
    const filter = createEntityTags(matcher, {
      store,
      ...(redis && { isUntracked: (resource) => redis.isUntracked(trackedLine(resource)) }),
      times,
      anonymousRecords: new AnonymousRecords(settings.anonymousRecords),
      waitMs: settings.wait,
      trackedResponseBytes: config.limits.trackedResponse,
      now: Date.now,
      onEvent: (event) => metrics.countEvent('entity-tags', event),
    });
    const coldStartSeconds = () => Math.ceil(store.coldStartLeftMs() / 1000);
    // Until the store is reached, its data may be new.
    let isReached = redis === undefined;
    const warmUp = async () => {
      isReached = await store.warmUp().then(
        () => true,
        () => isReached,
      );
    };
    redis?.onNewData(() => isolateLate(warmUp()));
    return {
      ...filter,
      start: warmUp,
      health() {
        const more = { details: metrics.eventDetails('entity-tags') };
        const text = whyNoTags(isReached, coldStartSeconds());
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
          'Time for which a new store still hands out no tag; 0: none.',
          'max',
          coldStartSeconds,
        ),
      ],
    };
  },
};

function createStore(
  { prefix, replicas }: Config['store'],
  redis: RedisStore | undefined,
  times: EntityTagTimes,
  log: Log,
): RedisTagStore | MemoryTagStore {
  if (redis === undefined) return new MemoryTagStore({ times });
  return new RedisTagStore({
    redis: redis.forTags,
    times,
    coldStartMs: redis.coldStartMs,
    form: redis.form,
    scripts: buildTagScripts(undefined, redis.forms),
    onColdStart(coldStartMs) {
      const seconds = Math.ceil(coldStartMs / 1000);
      log.warn({ event: 'hold', seconds }, `no tag is handed out for ${seconds} s: ${newData}`);
    },
    keyPrefix: prefix,
    replicas,
  });
}

const newData =
  'Redis is new, was emptied or restarted, another node is the primary, or slots of a Cluster were moved';

/** Undefined: tags are handed out. */
function whyNoTags(isReached: boolean, secondsLeft: number): string | undefined {
  if (!isReached) return 'no tag is handed out, the store was not reached yet';
  if (secondsLeft === 0) return undefined;
  return `no tag is handed out yet and tracked writes get 503, for ${secondsLeft} s more: ${newData}`;
}

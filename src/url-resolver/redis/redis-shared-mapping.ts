import type { Redis } from '../../redis/redis.ts';
import type { SharedMapping } from '../cache/shared-mapping.ts';

/** Slots as keys `<prefix>:mapping:<slot>` in Redis. `prefix` keeps deployments apart. */
export function createRedisSharedMapping(redis: Redis, prefix: string): SharedMapping {
  const keyOf = (slot: string) => `${prefix}:mapping:${slot}`;
  return {
    async read(slots) {
      const keys = slots.map(keyOf);
      if (redis.kind !== 'cluster') return textsOf(await redis.command('MGET', ...keys));
      // On a Cluster the keys are on many nodes; single GETs of one turn share a write to each.
      return textsOf(await Promise.all(keys.map((key) => redis.command('GET', key))));
    },
    async write(slot, value, ttlMs) {
      await redis.command('SET', keyOf(slot), value, 'PX', Math.max(1, Math.floor(ttlMs)));
    },
  };
}

function textsOf(reply: unknown): (string | null)[] {
  if (!Array.isArray(reply)) return [];
  return reply.map((value: unknown) => (typeof value === 'string' ? value : null));
}

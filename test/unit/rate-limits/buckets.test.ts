import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createRedisBuckets,
  type Rate,
  type Taken,
  takeTokenScript,
} from '../../../src/rate-limits/buckets.ts';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import { defineScript, type Redis } from '../../../src/redis/redis.ts';
import { type Break, swap } from '../entity-tags/clocked-scripts.ts';
import {
  type RedisCluster,
  type SingleRedis,
  startCluster,
  startRedis,
} from '../../harness/redis-processes.ts';
import { expected, type Moments, scripts, second, startUs } from './bucket-moments.ts';

/** The script is compared with the rules of docs/decisions/rate-limits.md, on Redis and a Cluster. */
let single: SingleRedis;
let cluster: RedisCluster;
const stores: { name: string; redis: Redis }[] = [];
beforeAll(async () => {
  [single, cluster] = await Promise.all([startRedis(), startCluster()]);
  stores.push({ name: 'Redis', redis: connectRedis({ url: single.url, timeoutMs: 20_000 }) });
  stores.push({ name: 'Cluster', redis: connectRedis({ url: cluster.url, timeoutMs: 20_000 }) });
  for (const { redis } of stores) expect(await redis.ready(60_000)).toBe(true);
});
afterAll(async () => {
  for (const { redis } of stores) await redis.close();
  await single?.close();
  await cluster?.close();
});

/** The script with a clock that a test sets, and with rules broken on purpose. */
function clocked(breaks: readonly Break[] = []) {
  let lua = swap(takeTokenScript.lua, {
    search: "redis.call('TIME')",
    replace: '{tonumber(ARGV[3]), tonumber(ARGV[4])}',
  });
  // The times are invented, so the server's own clock must not expire a record.
  lua = swap(lua, { search: ", 'PX', math.ceil((time - now) / 1000))", replace: ')' });
  for (const each of breaks) lua = swap(lua, each);
  return defineScript('clocked', lua);
}

let buckets = 0;
async function play(
  redis: Redis,
  rate: Rate,
  moments: Moments,
  breaks: readonly Break[] = [],
): Promise<Taken[]> {
  let nowUs = 0;
  const timed: Pick<Redis, 'runScript'> = {
    runScript: (script, keys, args) =>
      redis.runScript(script, keys, [...args, Math.floor(nowUs / 1_000_000), nowUs % 1_000_000]),
  };
  const take = createRedisBuckets(timed, 'test', clocked(breaks));
  buckets += 1;
  const taken: Taken[] = [];
  for (const moment of moments) {
    nowUs = startUs + moment;
    taken.push(await take(`bucket-${buckets}`, rate));
  }
  return taken;
}

describe('the script', () => {
  it('follows the rules, in Redis and in a Cluster', async () => {
    for (const { name, redis } of stores)
      for (const [rate, moments] of scripts)
        expect(await play(redis, rate, moments), name).toEqual(expected(rate, moments));
  });

  it('follows the rules at random times', async () => {
    const rates = fc.record({
      requests: fc.integer({ min: 1, max: 9 }),
      perMs: fc.integer({ min: 1000, max: 9000 }),
    });
    const moments = fc.array(fc.integer({ min: -2 * second, max: 9 * second }), {
      minLength: 1,
      maxLength: 20,
    });
    for (const [rate, made] of fc.sample(fc.tuple(rates, moments), 40))
      for (const { redis } of stores) expect(await play(redis, rate, made)).toEqual(expected(rate, made));
  });

  const wait = '  return {0, 0, next - size - now}';
  it.each<[string, Break]>([
    [
      'forgets that a clock can be set back',
      { search: 'if full_at > now + size then', replace: 'if false then' },
    ],
    ['fills a bucket beyond its size', { search: 'math.max(full_at, now)', replace: 'full_at' }],
    ['gives one more than it contains', { search: 'next - now > size', replace: 'next - now > size + cost' }],
    ['gives one less', { search: 'next - now > size', replace: 'next - now >= size' }],
    ['does not store a clamped time', { search: '  keep(full_at)', replace: '' }],
    ['makes a refused client wait longer', { search: wait, replace: `  keep(next)\n${wait}` }],
    ['loses digits of the time', { search: "'%.0f'", replace: "'%.10g'" }],
    ['rounds the tokens that are left up', { search: 'math.floor((size', replace: 'math.ceil((size' }],
  ])('that %s is noticed', async (_, broken) => {
    const redis = stores[0]?.redis as Redis;
    const isNoticed: boolean[] = [];
    for (const [rate, moments] of scripts) {
      const wrong = await play(redis, rate, moments, [broken]);
      isNoticed.push(JSON.stringify(wrong) !== JSON.stringify(expected(rate, moments)));
    }
    expect(isNoticed).toContain(true);
  });

  it('is atomic: of many concurrent requests no more pass than a bucket contains', async () => {
    for (const { redis } of stores) {
      const take = createRedisBuckets(redis, 'at-once');
      const asked = Array.from({ length: 100 }, () => take('b', { requests: 10, perMs: 3_600_000 }));
      const taken = await Promise.all(asked);
      expect(taken.filter(({ isAllowed }) => isAllowed)).toHaveLength(10);
    }
  });
});

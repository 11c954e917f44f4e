import { expect, test } from 'vitest';
import type { Redis, RedisArgument } from '../../src/redis/redis.ts';
import { UrlResolver } from '../../src/url-resolver/filter.ts';
import { MemoryPurgeLog } from '../../src/url-resolver/purge-log.ts';
import {
  createRedisSharedMapping,
  readSharedCopy,
  SharedCache,
} from '../../src/url-resolver/shared-cache.ts';
import { resolve, targetOf } from './resolver-request.ts';

const entityTypes = ['merchants'];
const mapping = { entityType: 'merchants', entityId: 'M1' };
const lifetimes = { ttlMs: 100, notFoundTtlMs: 7, staleWhileRevalidateMs: 20, staleIfErrorMs: 50 };
const stamp = { seq: 3, id: 'i' };
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Over a store that a test fills, empties and takes away. */
function open(slots = 1000, timeoutMs = 60_000, more: Partial<typeof lifetimes> = {}) {
  const written = new Map<string, { readonly value: string; readonly ttlMs: number }>();
  const store = { isAway: false, isMute: false, reads: [] as (readonly string[])[] };
  const changes: boolean[] = [];
  const clock = { nowMs: 5_000 };
  const cache = new SharedCache({
    store: {
      async read(asked) {
        store.reads.push(asked);
        if (store.isMute) await new Promise(() => {});
        if (store.isAway) throw new Error('away');
        return asked.map((slot) => written.get(slot)?.value ?? null);
      },
      async write(slot, value, ttlMs) {
        if (store.isAway) throw new Error('away');
        written.set(slot, { value, ttlMs });
      },
    },
    ...{ slots, timeoutMs, lifetimes: { ...lifetimes, ...more }, entityTypes },
    now: () => clock.nowMs,
    onChange: (isAway) => changes.push(isAway),
  });
  return { cache, store, written, changes, clock };
}

test('what was put comes back, found and not found, for as long as anybody could use it', async () => {
  const { cache, written } = open();
  cache.put('found', { mapping, storedAtMs: 1, stamp });
  cache.put('not found', { mapping: null, storedAtMs: 2, stamp });
  expect([...written.values()].map(({ ttlMs }) => ttlMs)).toEqual([150, 7]);
  expect(await cache.get('found')).toEqual({ mapping, storedAtMs: 1, stamp });
  expect(await cache.get('not found')).toEqual({ mapping: null, storedAtMs: 2, stamp });
  expect(await cache.get('neither')).toBeUndefined();
  const longer = open(10, 1000, { staleWhileRevalidateMs: 80 });
  longer.cache.put('found', { mapping, storedAtMs: 1, stamp });
  expect([...longer.written.values()].map(({ ttlMs }) => ttlMs)).toEqual([180]);
});

test('keys of one turn are read at once, each slot but once, in no more slots than there may be', async () => {
  const { cache, store } = open(3);
  await Promise.all(Array.from({ length: 100 }, (_, i) => cache.get(`key ${i}`)));
  expect(store.reads.map((slots) => slots.toSorted())).toEqual([['0', '1', '2']]);
  await cache.get('later');
  expect(store.reads.map((slots) => slots.length)).toEqual([3, 1]);
});

test('of two keys in one slot the one that was put last is there, and not taken for the other', async () => {
  const { cache } = open(1);
  cache.put('a', { mapping, storedAtMs: 1, stamp });
  cache.put('b', { mapping: null, storedAtMs: 2, stamp });
  expect(await Promise.all([cache.get('a'), cache.get('b')])).toEqual([
    undefined,
    { mapping: null, storedAtMs: 2, stamp },
  ]);
});

test('a store that is away is tried once a second, by a read or a write, and reported once', async () => {
  const { cache, store, changes, clock, written } = open();
  store.isAway = true;
  expect(await cache.get('a')).toBeUndefined();
  expect([cache.isAway, changes, store.reads.length]).toEqual([true, [true], 1]);
  clock.nowMs += 999;
  expect(await cache.get('a')).toBeUndefined();
  store.isAway = false;
  cache.put('a', { mapping, storedAtMs: 1, stamp });
  expect([written.size, store.reads.length]).toEqual([0, 1]);
  store.isAway = true;
  clock.nowMs += 1;
  expect(await cache.get('a')).toBeUndefined();
  expect([changes, store.reads.length]).toEqual([[true], 2]);
  clock.nowMs += 1000;
  store.isAway = false;
  cache.put('a', { mapping, storedAtMs: 1, stamp });
  await nextTurn();
  expect([cache.isAway, changes]).toEqual([false, [true, false]]);
  expect(await cache.get('a')).toMatchObject({ mapping });
  store.isAway = true;
  cache.put('b', { mapping, storedAtMs: 1, stamp });
  await nextTurn();
  expect([cache.isAway, changes]).toEqual([true, [true, false, true]]);
});

test('a store that does not answer in time is away', async () => {
  const { cache, store, changes } = open(10, 1);
  store.isMute = true;
  expect(await cache.get('a')).toBeUndefined();
  expect([cache.isAway, changes]).toEqual([true, [true]]);
});

test.each<[string, unknown, boolean]>([
  ['as it is written', [1, 'k', 'merchants', 'M1', 5, 3, 'i'], true],
  ['of nothing found', [1, 'k', null, null, 5, 3, 'i'], true],
  ['of another version', [2, 'k', 'merchants', 'M1', 5, 3, 'i'], false],
  ['of another key', [1, 'K', 'merchants', 'M1', 5, 3, 'i'], false],
  ['of a type that is not configured', [1, 'k', 'cms-pages', 'M1', 5, 3, 'i'], false],
  ['of no id', [1, 'k', 'merchants', '', 5, 3, 'i'], false],
  ['with a time that is none', [1, 'k', 'merchants', 'M1', '5', 3, 'i'], false],
  ['with a place in the log that is none', [1, 'k', 'merchants', 'M1', 5, null, 'i'], false],
  ['with a past that is none', [1, 'k', 'merchants', 'M1', 5, 3, 4], false],
  ['that is no list', { 0: 1, 1: 'k' }, false],
])('a copy %s is one: %#', (_, value, isCopy) => {
  expect(readSharedCopy('k', JSON.stringify(value), entityTypes) !== undefined).toBe(isCopy);
});

test('what is no JSON is no copy', () => {
  expect(readSharedCopy('k', '[1,"k"', entityTypes)).toBeUndefined();
});

test.each([
  ['single', [['MGET', 'p:mapping:a', 'p:mapping:b']]],
  [
    'cluster',
    [
      ['GET', 'p:mapping:a'],
      ['GET', 'p:mapping:b'],
    ],
  ],
] as const)('in Redis, %s: slots are keys, which are gone by themselves', async (kind, reads) => {
  const commands: RedisArgument[][] = [];
  const replies: unknown[] = [];
  const redis = {
    kind,
    async command(...command: RedisArgument[]) {
      commands.push(command);
      return replies.shift();
    },
  } as unknown as Redis;
  const mappings = createRedisSharedMapping(redis, 'p');
  replies.push(...(kind === 'single' ? [['x', null]] : ['x', null]));
  expect(await mappings.read(['a', 'b'])).toEqual(['x', null]);
  expect(commands.splice(0)).toEqual(reads);
  await mappings.write('a', 'x', 1500.9);
  await mappings.write('a', 'x', 0.2);
  expect(commands).toEqual([
    ['SET', 'p:mapping:a', 'x', 'PX', 1500],
    ['SET', 'p:mapping:a', 'x', 'PX', 1],
  ]);
});

test('what one process has learnt another one need not ask, and both obey one log of purges', async () => {
  const slots = new Map<string, string>();
  const purgeLog = new MemoryPurgeLog();
  const asked: string[] = [];
  const changes: string[] = [];
  const mappings = {
    read: async (names: readonly string[]) => names.map((name) => slots.get(name) ?? null),
    write: async (name: string, value: string) => void slots.set(name, value),
  };
  const create = (name: string) =>
    new UrlResolver({
      upstream: {
        async ask() {
          asked.push(name);
          const attributes = { entityType: 'merchants', entityId: 'M1' };
          const body = Buffer.from(JSON.stringify({ data: [{ type: 'url-resolver', attributes }] }));
          return { status: 200, fields: ['Content-Type', 'application/json'], body };
        },
      },
      shared: { mappings, purgeLog, timeoutMs: 60_000 },
      onEvent: ({ kind }) => changes.push(`${name}: ${kind}`),
    });
  const [one, other] = [create('one'), create('other')];
  await Promise.all([one.start(), other.start()]);
  const statusFrom = async (resolver: UrlResolver) =>
    (await resolve(resolver, targetOf('/m'))).field('Cache-Status');
  expect(await statusFrom(one)).toMatch(/fwd=miss/);
  expect(await statusFrom(other)).toMatch(/detail=shared$/);
  expect(await one.purge({ url: '/m' })).toBe('purged');
  expect(await statusFrom(other)).toMatch(/fwd=miss/);
  expect([asked, slots.size]).toEqual([['one', 'other'], 1]);
  mappings.read = () => Promise.reject(new Error('away'));
  expect(await resolve(other, targetOf('/n'))).toMatchObject({ status: 200 });
  expect([other.stats().sharedAway, one.stats().sharedAway, changes]).toEqual([
    ...[true, false, ['other: shared-away']],
  ]);
  await Promise.all([one.close(), other.close()]);
});

test('a purge ends once all earlier purges are known, whether or not their messages came', async () => {
  const log = new MemoryPurgeLog();
  const deaf = new UrlResolver({
    upstream: { ask: () => Promise.reject(new Error('nobody asks')) },
    shared: {
      mappings: { read: async () => [], write: async () => {} },
      purgeLog: {
        append: (purge) => log.append(purge),
        subscribe: () => () => {},
        read: async (from) => {
          await nextTurn();
          return log.read(from);
        },
      },
    },
  });
  await deaf.start();
  await log.append({ url: '/a' });
  expect(await deaf.purge({ url: '/b' })).toBe('purged');
  expect(deaf.stats().purgeSeq).toBe(2);
  await deaf.close();
});

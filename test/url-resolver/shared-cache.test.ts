import { expect, test } from 'vitest';
import { readSharedCopy, SharedCache } from '../../src/url-resolver/shared-cache.ts';

const entityTypes = ['merchants'];
const mapping = { entityType: 'merchants', entityId: 'M1' };
const lifetimes = { ttlMs: 100, notFoundTtlMs: 7, staleWhileRevalidateMs: 20, staleIfErrorMs: 50 };
const stamp = 'e';
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Over a store that a test fills, empties and takes away. */
function open(slots = 1000, timeoutMs = 60_000, more: Partial<typeof lifetimes> = {}) {
  const written = new Map<string, { readonly value: string; readonly ttlMs: number }>();
  const store = { isAway: false, isMute: false, reads: [] as string[] };
  const changes: boolean[] = [];
  const clock = { nowMs: 5_000, wallMs: 1_800_000_000_000 };
  const cache = new SharedCache({
    store: {
      async read(slot) {
        store.reads.push(slot);
        if (store.isMute) await new Promise(() => {});
        if (store.isAway) throw new Error('away');
        return written.get(slot)?.value ?? null;
      },
      async write(slot, value, ttlMs) {
        if (store.isAway) throw new Error('away');
        written.set(slot, { value, ttlMs });
      },
    },
    ...{ slots, timeoutMs, lifetimes: { ...lifetimes, ...more }, entityTypes },
    now: () => clock.nowMs,
    wallClock: () => clock.wallMs,
    onChange: (isAway) => changes.push(isAway),
  });
  return { cache, store, written, changes, clock };
}

test('what was put comes back, found and not found, for as long as anybody could use it', async () => {
  const { cache, written } = open();
  cache.put('found', { mapping, stamp });
  cache.put('not found', { mapping: null, stamp });
  expect([...written.values()].map(({ ttlMs }) => ttlMs)).toEqual([150, 7]);
  expect(await cache.get('found')).toEqual({ mapping, ageMs: 0, stamp });
  expect(await cache.get('not found')).toEqual({ mapping: null, ageMs: 0, stamp });
  expect(await cache.get('neither')).toBeUndefined();
  const longer = open(10, 1000, { staleWhileRevalidateMs: 80 });
  longer.cache.put('found', { mapping, stamp });
  expect([...longer.written.values()].map(({ ttlMs }) => ttlMs)).toEqual([180]);
});

test('a store that is away is tried once a second, by a read or a write, and reported once', async () => {
  const { cache, store, changes, clock, written } = open();
  store.isAway = true;
  expect(await cache.get('a')).toBeUndefined();
  expect([cache.isAway, changes, store.reads.length]).toEqual([true, [true], 1]);
  clock.nowMs += 999;
  expect(await cache.get('a')).toBeUndefined();
  store.isAway = false;
  cache.put('a', { mapping, stamp });
  expect([written.size, store.reads.length]).toEqual([0, 1]);
  store.isAway = true;
  clock.nowMs += 1;
  expect(await cache.get('a')).toBeUndefined();
  expect([changes, store.reads.length]).toEqual([[true], 2]);
  clock.nowMs += 1000;
  store.isAway = false;
  cache.put('a', { mapping, stamp });
  await nextTurn();
  expect([cache.isAway, changes]).toEqual([false, [true, false]]);
  expect(await cache.get('a')).toMatchObject({ mapping });
  store.isAway = true;
  cache.put('b', { mapping, stamp });
  await nextTurn();
  expect([cache.isAway, changes]).toEqual([true, [true, false, true]]);
});

test.each<[string, unknown, boolean]>([
  ['as it is written', [2, 'k', 'merchants', 'M1', 5, 'e'], true],
  ['of nothing found', [2, 'k', null, null, 5, 'e'], true],
  ['of another version', [1, 'k', 'merchants', 'M1', 5, 'e'], false],
  ['of another key', [2, 'K', 'merchants', 'M1', 5, 'e'], false],
  ['of a type that is not configured', [2, 'k', 'cms-pages', 'M1', 5, 'e'], false],
  ['without an id', [2, 'k', 'merchants', '', 5, 'e'], false],
  ['with a text as its time', [2, 'k', 'merchants', 'M1', '5', 'e'], false],
  ['with a number as its stamp', [2, 'k', 'merchants', 'M1', 5, 4], false],
  ['that is an object', { 0: 2, 1: 'k' }, false],
])('a copy %s is one: %#', (_, value, isCopy) => {
  expect(readSharedCopy('k', JSON.stringify(value), entityTypes, 9) !== undefined).toBe(isCopy);
});

test('what is no JSON is no copy', () => {
  expect(readSharedCopy('k', '[1,"k"', entityTypes, 9)).toBeUndefined();
});

test.each([
  [7000, 7000],
  [0, 0],
  // The clock of this process was set back, or the writer's is ahead.
  [-3_600_000, 0],
])('a copy that was written %i ms ago by the wall clock is %i ms old', async (ms, ageMs) => {
  const { cache, clock } = open();
  cache.put('a', { mapping, stamp });
  clock.wallMs += ms;
  expect((await cache.get('a'))?.ageMs).toBe(ageMs);
});

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
  const store = { isAway: false, does: 'answer' as 'answer' | 'fail' | 'hang', reads: [] as string[] };
  const clock = { wallMs: 1_800_000_000_000 };
  const cache = new SharedCache({
    store: {
      isReady: () => !store.isAway,
      async read(slot) {
        store.reads.push(slot);
        if (store.does === 'hang') await new Promise(() => {});
        if (store.does === 'fail') throw new Error('it fails');
        return written.get(slot)?.value ?? null;
      },
      async write(slot, value, ttlMs) {
        if (store.does === 'hang') await new Promise(() => {});
        if (store.does === 'fail') throw new Error('it fails');
        written.set(slot, { value, ttlMs });
      },
    },
    ...{ slots, timeoutMs, lifetimes: { ...lifetimes, ...more }, entityTypes },
    wallClock: () => clock.wallMs,
  });
  return { cache, store, written, clock };
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

test('a store that is away is not asked, and a failed or silent one gives no copy', async () => {
  const { cache, store, written } = open(1000, 1);
  cache.put('a', { mapping, stamp });
  store.isAway = true;
  expect(await cache.get('a')).toBeUndefined();
  cache.put('b', { mapping, stamp });
  expect([written.size, store.reads]).toEqual([1, []]);
  store.isAway = false;
  for (const does of ['fail', 'hang'] as const) {
    store.does = does;
    expect(await cache.get('a')).toBeUndefined();
    cache.put('b', { mapping, stamp });
    await nextTurn();
  }
  expect([written.size, store.reads.length]).toEqual([1, 2]);
  store.does = 'answer';
  expect(await cache.get('a')).toMatchObject({ mapping });
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

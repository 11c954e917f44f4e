import { describe, expect, test } from 'vitest';
import { digest, randomTag } from '../../src/entity-tags/keys.ts';
import { MemoryTagStore } from '../../src/entity-tags/memory-store.ts';
import { describeTagStore, leaseMs, timesOf } from './tag-store.contract.ts';

describe.each([
  ['memory', 100_000],
  // The clock is that of the process: near 0 nothing may be taken for long ago, and no moment for none.
  ['memory, from the first millisecond of its process on', 0],
])('%s', (name, startMs) => {
  describeTagStore(name, async () => {
    let now = startMs;
    const store = new MemoryTagStore({ times: timesOf(), now: () => now });
    return {
      store,
      advance: async (ms) => {
        now += ms;
      },
    };
  });
});

test('memory: what has no room is the oldest that nobody writes; never a lease, nor a write of which nobody knows', () => {
  const store = new MemoryTagStore({ times: timesOf(), maxRecords: 2, now: () => 1000 });
  const keyOf = (name: string) => digest([name]);
  const write = (key: string) => store.claim(keyOf(key), { token: `t ${key}`, tags: null });
  const end = (key: string, outcome: 'applied' | 'unknown') => {
    const newTag = outcome === 'applied' ? `tag of ${key}` : null;
    store.end(keyOf(key), { token: `t ${key}`, tagged: false, outcome, newTag, shopTag: null });
  };
  for (const key of ['under way', 'unknown', 'one', 'two', 'three', 'four']) write(key);
  end('under way', 'applied');
  store.claim(keyOf('under way'), { token: 'held', tags: ['tag of under way'] });
  end('unknown', 'unknown');
  for (const key of ['one', 'two', 'three', 'four']) end(key, 'applied');
  const kindOf = (key: string) => store.claim(keyOf(key), { token: 'next', tags: [`tag of ${key}`] }).kind;
  expect(['under way', 'unknown', 'one', 'two', 'three', 'four'].map(kindOf)).toEqual([
    ...['busy', 'indeterminate', 'not-current', 'not-current', 'granted', 'granted'],
  ]);
});

test('memory: there is no cold start, neither at the start nor later', async () => {
  const store = new MemoryTagStore({ times: timesOf() });
  expect([await store.warmUp(), store.coldStartLeftMs()]).toEqual([0, 0]);
});

test('memory: thousands of writes whose outcomes nobody knows shut only what they wrote', async () => {
  let now = 1000;
  const store = new MemoryTagStore({ times: timesOf(), now: () => now });
  const keys = Array.from({ length: 5000 }, (_, i) => digest(['cart', String(i)]));
  const kinds = (tags: readonly string[] | null) =>
    new Set(keys.map((key) => store.claim(key, { token: 't', tags }).kind));
  expect(kinds(null)).toEqual(new Set(['granted']));
  for (const key of keys) {
    store.end(key, { token: 't', tagged: false, outcome: 'unknown', newTag: null, shopTag: null });
  }
  expect(kinds([randomTag()])).toEqual(new Set(['indeterminate']));
  now += leaseMs;
  expect(kinds([randomTag()])).toEqual(new Set(['not-current']));
});

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

test('memory: thousands of writes whose outcomes nobody knows shut only what they wrote', async () => {
  let now = 1000;
  const store = new MemoryTagStore({ times: timesOf(), now: () => now });
  const keys = Array.from({ length: 5000 }, (_, i) => digest(['cart', String(i)]));
  const kinds = (tags: readonly string[] | null) =>
    new Set(keys.map((key) => store.claim(key, { token: 't', tags }).kind));
  expect(kinds(null)).toEqual(new Set(['granted']));
  for (const key of keys) {
    store.markSent(key, 't');
    store.end(key, { token: 't', tagged: false, outcome: 'unknown', newTag: null, shopTag: null });
  }
  expect(kinds([randomTag()])).toEqual(new Set(['indeterminate']));
  now += leaseMs;
  expect(kinds([randomTag()])).toEqual(new Set(['not-current']));
});

import { describe, expect, test } from 'vitest';
import { digest, randomTag } from '../../../src/entity-tags/keys.ts';
import { MemoryTagStore } from '../../../src/entity-tags/memory-store.ts';
import { describeTagStore, leaseMs, timesOf } from './tag-store.contract.ts';

describe.each([
  ['memory', 100_000],
  // The clock starts with the process. Near 0, the store must not treat "0" as "never" or as "long ago".
  ['memory, with a clock that starts at 0', 0],
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

test('memory: a full store evicts the oldest records, but none with a lease or an unknown write', () => {
  const store = new MemoryTagStore({ times: timesOf(), maxRecords: 2, now: () => 1000 });
  const keyOf = (name: string) => digest([name]);
  const write = (key: string) => store.claim(keyOf(key), { token: `t ${key}`, tags: null });
  const end = (key: string, outcome: 'applied' | 'unknown') => {
    const newTag = outcome === 'applied' ? `tag of ${key}` : null;
    store.end(keyOf(key), { token: `t ${key}`, tagged: false, outcome, newTag, shopTag: null });
  };
  for (const key of ['under way', 'unknown', 'one', 'two', 'three', 'four']) write(key);
  end('under way', 'applied');
  store.claim(keyOf('under way'), { token: 'kept', tags: ['tag of under way'] });
  end('unknown', 'unknown');
  for (const key of ['one', 'two', 'three', 'four']) end(key, 'applied');
  const kindOf = (key: string) => store.claim(keyOf(key), { token: 'next', tags: [`tag of ${key}`] }).kind;
  expect(['under way', 'unknown', 'one', 'two', 'three', 'four'].map(kindOf)).toEqual([
    ...['busy', 'indeterminate', 'not-current', 'not-current', 'granted', 'granted'],
  ]);
});

describe('memory: a full store', () => {
  const keyOf = (name: string) => digest([name]);
  const endOf = (newTag: string) => ({ newTag, variant: 'v', fingerprint: newTag, shopTag: null });
  const rest = { isOfCollection: false, fields: null };

  test('gives a tag to each new cart, and evicts another one', () => {
    let now = 1000;
    const store = new MemoryTagStore({ times: timesOf(), maxRecords: 10, now: () => now });
    const names = Array.from({ length: 100 }, (_, i) => `cart ${i}`);
    const readAt = (name: string) => ({ name, stamp: store.readStampAt(keyOf(name), now) });
    // Ten reads are in progress at a time. In a full store, the end of each one evicts a record.
    for (let i = 0; i < names.length; i += 10) {
      const begun = names.slice(i, i + 10).map(readAt);
      now += 100;
      for (const { name, stamp } of begun)
        expect(store.endRead(keyOf(name), { ...endOf(name), ...rest, stamp })?.tag).toBe(name);
    }
  });

  test('gives no tag to a read that began before the last change of an evicted cart', () => {
    let now = 1000;
    const store = new MemoryTagStore({ times: timesOf(), maxRecords: 1, now: () => now });
    const [one, other] = [keyOf('one'), keyOf('other')];
    const early = store.readStampAt(one, now);
    now += 10;
    store.claim(one, { token: 't', tags: null });
    store.end(one, { token: 't', tagged: false, outcome: 'applied', newTag: 'b', shopTag: null });
    now += 10;
    const later = store.readStampAt(one, now);
    now += 10;
    store.endRead(other, { ...endOf('x'), ...rest, stamp: store.readStampAt(other, now - 1) });
    expect(store.endRead(one, { ...endOf('old'), ...rest, stamp: early })).toBeNull();
    expect(store.endRead(one, { ...endOf('new'), ...rest, stamp: later })?.tag).toBe('new');
    // The later read has created a record again.
    expect(store.endRead(one, { ...endOf('old'), ...rest, stamp: early, variant: 'w' })).toBeNull();
  });
});

test('memory: a read during which the clock was set back sets no tag', () => {
  let now = 1000;
  const store = new MemoryTagStore({ times: timesOf(), now: () => now });
  const key = digest(['cart']);
  const stamp = store.readStampAt(key, now);
  now -= 5;
  const read = { variant: 'v', fingerprint: 'f', newTag: 'a', shopTag: null, fields: null };
  expect(store.endRead(key, { ...read, isOfCollection: false, stamp })).toBeNull();
  now += 5;
  expect(store.endRead(key, { ...read, isOfCollection: false, stamp })?.tag).toBe('a');
});

test('memory: no cold start', async () => {
  const store = new MemoryTagStore({ times: timesOf() });
  expect([await store.warmUp(), store.coldStartLeftMs()]).toEqual([0, 0]);
});

test('memory: 5000 unknown writes are indeterminate for one lease, and not longer', async () => {
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

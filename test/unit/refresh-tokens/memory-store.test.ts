import { describe, expect, test } from 'vitest';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { MemoryTokenStore } from '../../../src/refresh-tokens/memory-store.ts';
import { contract, newSubject, newToken } from './store-contract.ts';
import { memorySubject } from './stores.ts';

const lifetimeMs = 1000;
const family = newFamily();

describe('the contract of token stores', () => {
  test.each(Object.entries(contract))('%s', async (_, check) => check(memorySubject()));
});

/** A store with a small limit of records, and a clock that the test moves. */
function openSmall(maxRecords: number, retentionMs: number | 'keep' = 'keep') {
  const clock = { nowMs: 1_000_000, evicted: 0 };
  const store = new MemoryTokenStore({
    ...{ lifetimeMs, retentionMs, maxRecords, now: () => clock.nowMs },
    onEvict: (records) => {
      clock.evicted += records;
    },
  });
  const issue = async () => {
    const token = newToken();
    await store.record(token, { subject: null, generation: 0, family, lifetimeMs });
    return token;
  };
  return { store, clock, issue };
}

test('a full store evicts the record that was changed the longest time ago', async () => {
  const { store, clock, issue } = openSmall(20);
  const [changed, oldest] = [await issue(), await issue()];
  for (let i = 0; i < 18; i += 1) await issue();
  await store.release(changed, 'a');
  await store.markUsed(changed, { owner: null, family, answer: null });
  await issue();
  expect([store.records.size, clock.evicted]).toEqual([20, 1]);
  expect(await store.claim(changed, 'b', 1)).toMatchObject({ kind: 'used' });
  expect(await store.claim(oldest, 'b', 1)).toMatchObject({ kind: 'granted', lifetimeMs: 0 });
});

test('a token with a claim is not evicted', async () => {
  const { store, issue } = openSmall(10);
  const [known, unknown] = [await issue(), newToken()];
  for (const token of [known, unknown]) await store.claim(token, 'a', 100);
  for (let i = 0; i < 50; i += 1) await issue();
  for (const token of [known, unknown])
    expect(await store.claim(token, 'b', 100)).toMatchObject({ kind: 'in-exchange' });
});

test('notes and claims of unknown tokens expire; a record ends after its lifetime and retention', async () => {
  const { store, clock, issue } = openSmall(10, 500);
  const [token, noted, claimed] = [await issue(), newToken(), newToken()];
  await store.markUsed(token, { owner: null, family, answer: null });
  await store.noteRevocation(noted, newSubject(), 'r');
  await store.claim(claimed, 'a', 100);
  expect(store.records.orphans).toBe(2);
  clock.nowMs += lifetimeMs + 499;
  expect(await store.claim(token, 'a', 1)).toMatchObject({ kind: 'used' });
  expect(await store.claim(noted, 'a', 1)).toMatchObject({ kind: 'granted', revokedBy: [] });
  clock.nowMs += 1;
  expect(await store.claim(token, 'a', 1)).toMatchObject({ kind: 'granted' });
  clock.nowMs += 1000;
  await issue();
  expect(store.records.orphans).toBe(0);
});

test('a released claim of an unknown token leaves no record', async () => {
  const { store } = openSmall(10);
  const token = newToken();
  await store.claim(token, 'a', 100);
  await store.release(token, 'a');
  expect([store.records.orphans, store.records.size]).toEqual([0, 0]);
});

test('of 1001 sealed answers the oldest is dropped', async () => {
  const { store, issue } = openSmall(2000);
  const tokens = await Promise.all(Array.from({ length: 1001 }, issue));
  const use = (sealed: string) => ({ owner: null, family, answer: { sealed, leewayMs: lifetimeMs } });
  for (const [i, token] of tokens.entries()) await store.markUsed(token, use(`answer ${i}`));
  const kept = [0, 1, 1000].map((i) => store.claim(tokens[i] as (typeof tokens)[number], 'a', 1));
  expect(await Promise.all(kept)).toMatchObject([
    { sealed: null },
    { sealed: 'answer 1' },
    { sealed: 'answer 1000' },
  ]);
});

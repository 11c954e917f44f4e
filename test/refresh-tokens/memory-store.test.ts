import { describe, expect, test } from 'vitest';
import { newFamily } from '../../src/refresh-tokens/issue.ts';
import { MemoryTokenStore } from '../../src/refresh-tokens/memory-store.ts';
import { all, contract, newSubject, newToken } from './store-contract.ts';
import { memorySubject } from './stores.ts';

const lifetimeMs = 1000;
const family = newFamily();

describe('the contract of token stores', () => {
  test.each(Object.entries(contract))('%s', async (_, holds) => holds(memorySubject()));
});

function open(maxRecords: number, retentionMs: number | 'keep' = 'keep') {
  const clock = { nowMs: 1_000_000, evicted: 0, evictions: 0 };
  const store = new MemoryTokenStore({
    lifetimeMs,
    retentionMs,
    maxRecords,
    now: () => clock.nowMs,
    onEvict: (records) => {
      clock.evicted += records;
      clock.evictions += 1;
    },
  });
  const issue = (ms: number) => {
    const token = newToken();
    store.record(token, { subject: null, generation: 0, family, lifetimeMs: ms });
    return token;
  };
  return { store, clock, issue };
}

test('bounded: what expired first goes first, counted, and is the shop’s to decide again', async () => {
  const { store, clock, issue } = open(20);
  const expiredEarly = issue(10);
  const long = issue(5000);
  const expiredLate = issue(20);
  clock.nowMs += 100;
  const rest = Array.from({ length: 18 }, () => issue(1000));
  expect([store.size, clock.evicted]).toEqual([18, 3]);
  const left = new Set((await all(store.list())).map(({ token }) => token));
  expect([left.has(expiredEarly), left.has(expiredLate), left.has(long)]).toEqual([false, false, true]);
  expect(rest.filter((token) => left.has(token))).toHaveLength(17);
  expect(store.claim(expiredEarly, 'a', 1).kind).toBe('granted');
});

test('a claim under way never goes', () => {
  const { store, issue } = open(10);
  const claimed = newToken();
  store.claim(claimed, 'a', 100);
  for (let i = 0; i < 50; i += 1) issue(1000);
  expect(store.claim(claimed, 'b', 100).kind).toBe('in-exchange');
});

test('a `mine` under way outlives room that is made', () => {
  const { store, issue } = open(10);
  const subject = newSubject();
  const noted = store.noteRevocationOfAll(subject, 'm');
  for (let i = 0; i < 50; i += 1) issue(1000);
  expect(store.generationOf(subject)).toBe(noted);
});

test('notes and claims of unknown tokens go with time, records after their retention', () => {
  const { store, clock, issue } = open(10, 500);
  const [token, noted, claimed] = [issue(lifetimeMs), newToken(), newToken()];
  store.markUsed(token, { owner: null, family, isProven: true, answer: null });
  store.noteRevocation(noted, newSubject(), 'r');
  store.claim(claimed, 'a', 100);
  clock.nowMs += lifetimeMs + 499;
  expect(store.claim(token, 'a', 1).kind).toBe('used');
  expect(store.claim(noted, 'a', 1)).toMatchObject({ kind: 'granted', revokedBy: [] });
  clock.nowMs += 1;
  expect(store.claim(token, 'a', 1).kind).toBe('granted');
});

test('one hundred thousand records: room is made rarely, since it costs a look at all of them', () => {
  const { store, clock, issue } = open(100_000);
  for (let i = 0; i < 130_000; i += 1) issue(1000 + (i % 1000));
  expect(clock.evicted).toBeGreaterThan(29_000);
  expect(store.size).toBeLessThanOrEqual(100_000);
  expect(clock.evictions).toBeLessThanOrEqual(3);
});

test('a customer who revokes 120,000 inventions pushes out no token, and hears that the book is full', () => {
  const { store, clock, issue } = open(100);
  const used = Array.from({ length: 50 }, () => issue(lifetimeMs));
  for (const token of used) store.markUsed(token, { owner: null, family, isProven: true, answer: null });
  const customer = newSubject();
  const answers = { noted: 0, full: 0, foreign: 0 };
  for (let i = 0; i < 120_000; i += 1) answers[store.noteRevocation(newToken(), customer, 'r')] += 1;
  expect(answers).toEqual({ noted: 64, full: 120_000 - 64, foreign: 0 });
  for (let i = 0; i < 20_000; i += 1) store.noteRevocation(newToken(), newSubject(), 'r');
  expect([store.strays, clock.evicted]).toEqual([10_000, 0]);
  expect(used.map((token) => store.claim(token, 'a', 1).kind).filter((kind) => kind !== 'used')).toEqual([]);
});

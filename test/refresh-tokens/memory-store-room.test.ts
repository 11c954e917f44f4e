import { expect, test } from 'vitest';
import { newFamily } from '../../src/refresh-tokens/issue.ts';
import { newSubject, newToken } from './store-contract.ts';
import { openSmallStore } from './stores.ts';

const lifetimeMs = 1000;
const family = newFamily();

test('one hundred thousand records: room is made rarely, since it costs a look at all of them', () => {
  const { store, clock, issue } = openSmallStore(family, 100_000);
  for (let i = 0; i < 130_000; i += 1) issue(1000 + (i % 1000));
  expect(clock.evicted).toBeGreaterThan(29_000);
  expect(store.size).toBeLessThanOrEqual(100_000);
  expect(clock.evictions).toBeLessThanOrEqual(3);
});

test('a customer who revokes 120,000 inventions pushes out no token, and hears that the book is full', () => {
  const { store, clock, issue } = openSmallStore(family, 100);
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

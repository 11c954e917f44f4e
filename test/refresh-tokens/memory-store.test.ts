import { describe, expect, test } from 'vitest';
import { newFamily } from '../../src/refresh-tokens/issue.ts';
import { all, contract, newSubject, newToken } from './store-contract.ts';
import { memorySubject, openSmallStore } from './stores.ts';

const lifetimeMs = 1000;
const family = newFamily();

describe('the contract of token stores', () => {
  test.each(Object.entries(contract))('%s', async (_, holds) => holds(memorySubject()));
});

test('bounded: what expired first goes first, counted, and is the shop’s to decide again', async () => {
  const { store, clock, issue } = openSmallStore(family, 20);
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
  const { store, issue } = openSmallStore(family, 10);
  const claimed = newToken();
  store.claim(claimed, 'a', 100);
  for (let i = 0; i < 50; i += 1) issue(1000);
  expect(store.claim(claimed, 'b', 100).kind).toBe('in-exchange');
});

test('a `mine` under way outlives room that is made', () => {
  const { store, issue } = openSmallStore(family, 10);
  const subject = newSubject();
  const noted = store.noteRevocationOfAll(subject, 'm');
  for (let i = 0; i < 50; i += 1) issue(1000);
  expect(store.generationOf(subject)).toBe(noted);
});

test('notes and claims of unknown tokens go with time, records after their retention', () => {
  const { store, clock, issue } = openSmallStore(family, 10, 500);
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

test('the list of tokens says which are ended with their family, revoked by mine, used, expired, or valid', async () => {
  const { store, clock } = openSmallStore(family, 100);
  const [ended, alive, user, other] = [newFamily(), newFamily(), newSubject(), newSubject()];
  const tokens = new Map<string, string>();
  const issue = (name: string, subject: typeof user | null, of: typeof family, ms = lifetimeMs) => {
    const token = newToken();
    tokens.set(token, name);
    store.record(token, {
      subject,
      generation: subject === null ? 0 : store.generationOf(subject),
      family: of,
      lifetimeMs: ms,
    });
    return token;
  };
  const use = { owner: null, family: ended, isProven: true, answer: null };
  store.markUsed(issue('used, of the family', null, ended), use);
  issue('of the family', null, ended);
  issue('of another family', null, alive);
  issue('of the user, before', user, alive);
  issue('of another user', other, alive);
  issue('of the other user, short', other, alive, 5);
  store.endFamily(ended);
  const noted = store.noteRevocationOfAll(user, 'm');
  store.settleRevocationOfAll(user, 'm', noted, true);
  issue('of the user, afterwards', user, alive);
  store.claim(issue('on its way', null, alive), 'a', 100);
  clock.nowMs += 5;
  const states = (await all(store.list())).map(({ token, state }) => [tokens.get(token), state]);
  expect(Object.fromEntries(states)).toEqual({
    'used, of the family': 'used',
    'of the family': 'revoked',
    'of another family': 'valid',
    'of the user, before': 'revoked',
    'of another user': 'valid',
    'of the other user, short': 'expired',
    'of the user, afterwards': 'valid',
    'on its way': 'in-exchange',
  });
  expect(await all(store.list(other))).toHaveLength(2);
});

test('a claim of an unknown token that has lapsed is forgotten by the next one, looked for once a second', () => {
  const { store, clock } = openSmallStore(family, 10);
  store.claim(newToken(), 'a', 100);
  expect(store.strays).toBe(1);
  clock.nowMs += 999;
  store.claim(newToken(), 'b', 100);
  expect(store.strays).toBe(2);
  clock.nowMs += 1;
  store.claim(newToken(), 'c', 100);
  expect(store.strays).toBe(2);
  clock.nowMs += 1000;
  store.claim(newToken(), 'd', 100);
  expect(store.strays).toBe(1);
});

test('a claim that is released leaves nothing of an unknown token', () => {
  const { store } = openSmallStore(family, 10);
  const token = newToken();
  store.claim(token, 'a', 100);
  store.release(token, 'a');
  expect([store.strays, store.size]).toEqual([0, 0]);
});

test('a thousand sealed answers are kept, and of the next one the oldest goes', () => {
  const { store, issue } = openSmallStore(family, 2000);
  const tokens = Array.from({ length: 1001 }, () => issue(lifetimeMs));
  const sealed = (i: number) => {
    const answer = store.claim(tokens[i] as (typeof tokens)[number], 'a', 1);
    return answer.kind === 'used' && answer.sealed;
  };
  const use = (i: number) =>
    store.markUsed(tokens[i] as (typeof tokens)[number], {
      ...{ owner: null, family, isProven: true, answer: { sealed: `answer ${i}`, leewayMs: lifetimeMs } },
    });
  for (let i = 0; i < 1000; i += 1) use(i);
  expect(sealed(0)).toBe('answer 0');
  use(1000);
  expect([0, 1, 1000].map(sealed)).toEqual([null, 'answer 1', 'answer 1000']);
});

test('expired tokens are purged at the end of their life, those of one user or all', async () => {
  const { store, clock } = openSmallStore(family, 10);
  const [user, other] = [newSubject(), newSubject()];
  for (const subject of [user, user, other])
    store.record(newToken(), { subject, generation: 0, family, lifetimeMs: 10 });
  clock.nowMs += 9;
  expect(await store.purgeExpired()).toBe(0);
  clock.nowMs += 1;
  expect([await store.purgeExpired(user), store.size]).toEqual([2, 1]);
  expect([await store.purgeExpired(), store.size]).toEqual([1, 0]);
});

test('a user who ended all, and has no token left, is forgotten when there are more of them than records', () => {
  const { store, issue } = openSmallStore(family, 3);
  issue(lifetimeMs);
  const end = (stands: boolean) => {
    const subject = newSubject();
    const noted = store.noteRevocationOfAll(subject, 'm');
    store.settleRevocationOfAll(subject, 'm', noted, stands);
    return { subject, noted };
  };
  const users = [end(true), end(true), end(true)];
  expect(users.map(({ subject, noted }) => store.generationOf(subject) === noted)).toEqual([
    true,
    true,
    true,
  ]);
  expect(store.generationOf(end(false).subject)).toBe(0);
  expect(users.map(({ subject }) => store.generationOf(subject))).toEqual([0, 0, 0]);
});

test('of who is left when room is made a user who ended all stays, and an ended family', () => {
  const { store } = openSmallStore(family, 2);
  const [owner, idle] = [newSubject(), newSubject()];
  const [kept, gone] = [newFamily(), newFamily()];
  store.record(newToken(), { subject: owner, generation: 0, family: kept, lifetimeMs });
  for (const subject of [owner, idle]) {
    const noted = store.noteRevocationOfAll(subject, 'm');
    store.settleRevocationOfAll(subject, 'm', noted, true);
  }
  for (const each of [kept, gone]) store.endFamily(each);
  const settled = store.generationOf(owner);
  const noted = store.noteRevocationOfAll(newSubject(), 'm');
  expect([owner, idle].map((subject) => store.generationOf(subject))).toEqual([settled, 0]);
  expect([kept, gone].map((each) => store.isFamilyEnded(each))).toEqual([true, false]);
  expect(noted).toBeGreaterThanOrEqual(settled);
});

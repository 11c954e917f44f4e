import { describe, expect, test } from 'vitest';
import type { Redis, RedisArgument, RedisScript } from '../../src/redis/redis.ts';
import { packDigest, RedisTokenStore } from '../../src/refresh-tokens/redis-store.ts';
import { all, newSubject, newToken } from './store-contract.ts';

/** A store over a Redis that says what the test lets it say; what the real one says is the contract's. */
function open(replies: Readonly<Record<string, unknown>>, more: object = {}) {
  const calls: [string, readonly RedisArgument[]][] = [];
  const answer = (name: string, args: readonly RedisArgument[]) => {
    calls.push([name, args]);
    const reply = replies[name];
    return typeof reply === 'function' ? reply(...args) : reply;
  };
  const redis = {
    kind: 'single',
    command: async (name: string, ...args: RedisArgument[]) => answer(name, args),
    runScript: async ({ name }: RedisScript, _keys: string[], args: RedisArgument[]) => answer(name, args),
    runScriptAndWait: async ({ name }: RedisScript, _keys: string[], args: RedisArgument[]) => ({
      reply: answer(name, args),
      replicas: replies.replicas,
    }),
  } as unknown as Redis;
  const store = new RedisTokenStore({ redis, lifetimeMs: 60_000, retentionMs: 'keep', ...more });
  return { store, calls };
}

const [token, subject] = [newToken(), newSubject()];
const packed = packDigest(subject);
const unavailable = { name: 'RedisUnavailable' };

describe('what a claim is answered', () => {
  test.each<[readonly unknown[], object]>([
    [
      ['granted', packed, '7', 'f', '1', packed],
      { kind: 'granted', subject, generation: 7, family: 'f', isKnown: true, revokedBy: [subject] },
    ],
    [
      ['granted', '', '0', '', '0'],
      { kind: 'granted', subject: null, generation: 0, family: null, isKnown: false, revokedBy: [] },
    ],
    [
      ['used', packed, '7', 'f', '50', '9', 'sealed'],
      { kind: 'used', subject, generation: 7, lifetimeMs: 50, usedForMs: 9, sealed: 'sealed' },
    ],
    [['used', '', '0', '', '50', '9', ''], { kind: 'used', subject: null, family: null, sealed: null }],
    [['in-exchange', '50', '1'], { kind: 'in-exchange', remainingMs: 50, isIndeterminate: true }],
    [['in-exchange', '50', '0'], { kind: 'in-exchange', remainingMs: 50, isIndeterminate: false }],
    [['revoked'], { kind: 'revoked' }],
    [['expired'], { kind: 'expired' }],
  ])('%j', async (reply, answer) => {
    const { store } = open({ 'token-claim': reply });
    expect(await store.claim(token, 'op', 5)).toMatchObject(answer);
  });
});

test.each<[string, Record<string, unknown>, (store: RedisTokenStore) => Promise<unknown>]>([
  ['claim', { 'token-claim': ['something new'] }, (store) => store.claim(token, 'op', 5)],
  ['claim, no list', { 'token-claim': 'granted' }, (store) => store.claim(token, 'op', 5)],
  ['confirm', { 'token-confirm': ['something new'] }, (store) => store.confirm(token, 'op', 5)],
  [
    'noteRevocation',
    { 'token-noteRevocation': ['x'] },
    (store) => store.noteRevocation(token, subject, 'op'),
  ],
])('an answer that nobody understands is a store that is away: %s', async (_, replies, call) => {
  await expect(call(open(replies).store)).rejects.toMatchObject(unavailable);
});

test('a confirmation counts only when enough replicas have it; a lost claim stays lost whatever they have', async () => {
  const confirm = (reply: string, replicas: number) =>
    open({ 'token-confirm': [reply], replicas }, { replicas: 2 }).store.confirm(token, 'op', 5);
  expect(await confirm('confirmed', 2)).toBe('confirmed');
  await expect(confirm('confirmed', 1)).rejects.toMatchObject({ ...unavailable, word: 'noreplicas' });
  expect(await confirm('lost', 0)).toBe('lost');
});

test.each([
  [['full'], 'full'],
  [['another'], 'another'],
  [[], 'own'],
])('a use that is answered %j is of the family %s', async (reply, family) => {
  const use = { owner: null, family: 'own' as never, isProven: true, answer: null };
  expect(await open({ 'token-markUsed': reply }).store.markUsed(token, use)).toBe(family);
});

describe('a list', () => {
  const life = ['5', '10', '', ''];
  test.each<[string, readonly string[], object]>([
    [
      'is of what is there',
      ['valid', packed, '7', 'family01', '5', '10', '', ''],
      { state: 'valid', usedAtMs: null, revokedAtMs: null },
    ],
    [
      'names times',
      ['used', packed, '7', 'family01', '5', '10', '6', '8'],
      { state: 'used', usedAtMs: 6, revokedAtMs: 8 },
    ],
    ['knows an earlier generation', ['valid', packed, '6', 'family01', ...life], { state: 'revoked' }],
    ['knows an ended family', ['valid', '', '0', 'family02', ...life], { state: 'revoked', subject: null }],
    ['says used of what is used', ['used', packed, '6', 'family02', ...life], { state: 'used' }],
    ['needs no family', ['valid', packed, '7', '', ...life], { state: 'valid', family: null }],
  ])('%s', async (_, look, entry) => {
    const { store, calls } = open({
      'token-look': (...args: RedisArgument[]) => (args.includes(packDigest(token)) ? look : []),
      'token-generation': ['7'],
      'token-familyEnd': [look[3] === 'family02' ? '99' : ''],
      ZRANGEBYSCORE: [packDigest(newToken()), packDigest(token), packDigest(token)],
    });
    const listed = await all(store.list(subject));
    expect(listed).toMatchObject([entry, entry]);
    expect(listed[0]).toMatchObject({ token, issuedAtMs: 5, expiresAtMs: 10 });
    // Asked once for each, however many tokens there are.
    expect(calls.filter(([name]) => name === 'token-generation').length).toBeLessThanOrEqual(1);
  });

  test('is read two hundred at a time, of one index for a user and of 64 for all', async () => {
    const pages = [200, 200, 7];
    const { store, calls } = open({
      'token-look': [],
      ZRANGEBYSCORE: () => Array.from({ length: pages.shift() ?? 0 }, () => packDigest(newToken())),
    });
    expect(await all(store.list(subject))).toEqual([]);
    const ranges = () => calls.filter(([name]) => name === 'ZRANGEBYSCORE').map(([, args]) => args.slice(1));
    expect(ranges()).toEqual([0, 200, 400].map((from) => ['-inf', '+inf', 'LIMIT', from, 200]));
    expect(calls.filter(([name]) => name === 'token-look')).toHaveLength(407);
    calls.length = 0;
    await all(store.list());
    expect(new Set(calls.map(([, [index]]) => index)).size).toBe(64);
  });

  test('of tokens to be purged goes a minute beyond this clock; what is purged leaves its user’s list', async () => {
    const { store, calls } = open({
      ZRANGEBYSCORE: [packDigest(token), packDigest(newToken())],
      'token-purge': (...args: RedisArgument[]) => (args.includes(packDigest(token)) ? ['1', packed] : ['0']),
    });
    const before = Date.now();
    expect(await store.purgeExpired(subject)).toBe(1);
    const [, , until] = calls.find(([name]) => name === 'ZRANGEBYSCORE')?.[1] ?? [];
    expect(Number(until)).toBeGreaterThanOrEqual(before + 60_000);
    expect(Number(until)).toBeLessThanOrEqual(Date.now() + 60_000);
    expect(calls.filter(([name]) => name === 'ZREM').map(([, args]) => args[1])).toEqual([packDigest(token)]);
  });

  test('a purged token of nobody is in no user’s list', async () => {
    const { store, calls } = open({
      ZRANGEBYSCORE: (index: string) => (index.includes('tokens-5}') ? [packDigest(token)] : []),
      'token-purge': ['1', ''],
    });
    expect(await store.purgeExpired()).toBe(1);
    expect(calls.filter(([name]) => name === 'ZREM')).toEqual([]);
  });
});

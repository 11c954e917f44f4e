import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { isAnswer, isRejection } from '../../src/http/rejection.ts';
import { RedisUnavailable } from '../../src/redis/faults.ts';
import type { RefreshTokensOptions } from '../../src/refresh-tokens/context.ts';
import { createRefreshTokens, createTokenMatcher } from '../../src/refresh-tokens/filter.ts';
import { MemoryTokenStore } from '../../src/refresh-tokens/memory-store.ts';
import { createDigests } from '../../src/refresh-tokens/token-digest.ts';
import type { TokenStore } from '../../src/refresh-tokens/token-store.ts';
import { requestOf } from '../entity-tags/tag-filter.ts';
import { runFilter } from '../harness/run-filter.ts';
import { newSubject } from './store-contract.ts';
import { shopEndpoints } from './token-front.ts';

const lifetimeMs = 60_000;
const answer = (refreshToken?: string) => ({
  kind: 'answered' as const,
  status: 201,
  fields: ['Content-Type', 'application/json'],
  body: Buffer.from(JSON.stringify({ data: { attributes: { refreshToken } } })),
});

/** A filter over the memory store, of which a call does something else. */
function open(
  change: (store: MemoryTokenStore) => Partial<TokenStore> = () => ({}),
  options: Partial<RefreshTokensOptions> = {},
) {
  const store = new MemoryTokenStore({ lifetimeMs, retentionMs: 'keep' });
  Object.assign(store, change(store));
  const events: string[] = [];
  const clock = { now: 0 };
  const filter = createRefreshTokens(createTokenMatcher(shopEndpoints, { ignoredPrefixes: [] }), {
    ...{ store, subjectOf: () => undefined, lifetimeMs, answerWithinMs: 50_000, marginMs: 5000 },
    monotonicNow: () => clock.now,
    onEvent: (event) => events.push(event),
    ...options,
  });
  const refresh = async (token: string) => {
    const body = Buffer.from(JSON.stringify({ data: { attributes: { refreshToken: token } } }));
    const request = requestOf('POST', '/refresh-tokens', ['Content-Type', 'application/json']);
    const begun = await runFilter(filter, { ...request, body: { length: body.length } }, undefined, body);
    if (begun === undefined || isAnswer(begun)) throw new Error('neither refused nor forwarded');
    return isRejection(begun) ? begun.rejection : begun;
  };
  const forward = async (token: string) => {
    const hooks = await refresh(token);
    if (typeof hooks === 'string') throw new Error(hooks);
    return hooks;
  };
  return { store, events, clock, refresh, forward };
}

const away = () => Promise.reject(new RedisUnavailable('connection'));

test('a claim that is lost before it is confirmed is not forwarded, and counted', async () => {
  const { refresh, events } = open(() => ({ confirm: () => 'lost' }));
  expect(await refresh('a')).toBe('token-store-unavailable');
  expect(events).toEqual(['store-unavailable']);
});

test('what the store did not take is written before the next claim', async () => {
  let isAway = true;
  const { forward, refresh, events } = open((store) => {
    const markUsed = store.markUsed.bind(store);
    return { markUsed: (...args) => (isAway ? away() : sleep(5).then(() => markUsed(...args))) };
  });
  const hooks = await forward('a');
  await hooks.onOutcome(answer());
  expect(events).toContain('write-delayed');
  isAway = false;
  expect(await refresh('a')).toBe('refresh-token-invalid');
});

test('an outcome that nobody knows is counted, and its token unavailable until the claim lapses', async () => {
  const { forward, refresh, events } = open();
  const hooks = await forward('a');
  await hooks.onOutcome({ kind: 'unknown', fault: 'reset' });
  expect(events).toEqual(['exchange-granted', 'exchange-unknown']);
  expect(await refresh('a')).toBe('refresh-token-unavailable');
});

test('of several interpretations of a token those that were claimed are free when one is refused', async () => {
  const token = `${'q1'.repeat(8)}.${'r2'.repeat(8)}`;
  const [own, other, ...more] = createDigests().ofInterpretations(token);
  if (own === undefined || other === undefined) throw new Error('one interpretation only');
  expect(more).toEqual([]);
  let released = 0;
  const { store, refresh, events } = open((memory) => {
    const release = memory.release.bind(memory);
    const after = async (...args: Parameters<typeof release>) => {
      await sleep(5);
      release(...args);
      released += 1;
    };
    return { release: after };
  });
  store.claim(other, 'another', 1000);
  expect(await refresh(token)).toBe('refresh-token-busy');
  expect([released, events]).toEqual([2, ['exchange-refused-in-exchange']]);
  expect(store.claim(own, 'b', 1000).kind).toBe('granted');
});

test('may be sent until the margin has passed', async () => {
  const { forward, clock } = open();
  const { maySend } = await forward('a');
  clock.now = 5000;
  expect(maySend?.()).toBe(true);
  clock.now = 5001;
  expect(maySend?.()).toBe(false);
});

test('a token that somebody has revoked and nobody is known to own is withheld', async () => {
  const { store, forward, events } = open();
  const token = createDigests().ofToken('a');
  const by = newSubject();
  expect(store.noteRevocation(token, by, 'r')).toBe('noted');
  store.settleRevocation(token, by, 'r', true);
  const hooks = await forward('a');
  expect(await hooks.onOutcome(answer('new'))).toMatchObject({ rejection: { reason: 'revoked' } });
  expect(events).toContain('answer-withheld');
});

test.each(['end-family', 'forward'] as const)(
  '%s: nobody is answered before the family has ended',
  async (replay) => {
    let isEnded = false;
    const endFamily = async () => {
      await sleep(5);
      isEnded = true;
    };
    const { refresh, forward, events } = open(() => ({ endFamily }), { replay });
    const first = await forward('a');
    await first.onOutcome(answer('b'));
    const again = await refresh('a');
    if (typeof again !== 'string') await again.onOutcome(answer('c'));
    expect([isEnded, typeof again]).toEqual([true, replay === 'forward' ? 'object' : 'string']);
    expect(events).toContain('family-ended');
  },
);

test.each([true, false])(
  'a use about which nothing is known is counted where the book is full: %s',
  async (isFull) => {
    const { forward, events } = open(() => (isFull ? { markUsed: () => 'full' } : {}));
    const hooks = await forward('a');
    await hooks.onOutcome(answer());
    expect(events.includes('book-full')).toBe(isFull);
  },
);

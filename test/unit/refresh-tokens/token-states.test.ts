import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { isAnswer } from '../../../src/http/rejection.ts';
import type { RefreshTokensOptions } from '../../../src/refresh-tokens/context.ts';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import type { UpstreamHooks } from '../../../src/upstream/hooks.ts';
import { answer, lifetimeMs, openFilter } from './token-filter.ts';

const refused = 'refresh-token-invalid';
const forwarded = { ignoreClientAbort: 'once-sent' };
const unknown = (fault: 'reset' | 'timeout') => ({ kind: 'unknown' as const, fault });

test('a refresh marks the known interpretation of a token as used and releases the other', async () => {
  const { store, exchange } = openFilter();
  // Decoders that skip dots read another token here.
  const dotted = `${'0123456789abcdef'.repeat(2)}.${'fedcba9876543210'.repeat(2)}`;
  const [own, bare] = createDigests().ofInterpretations(dotted);
  if (own === undefined || bare === undefined) throw new Error('one interpretation only');
  store.record(own, { subject: null, generation: 0, family: newFamily(), lifetimeMs });
  await exchange(dotted, 'next');
  expect(await store.claim(own, 'another', 1000)).toMatchObject({ kind: 'used' });
  expect(await store.claim(bare, 'another', 1000)).toMatchObject({ kind: 'granted' });
});

test('a revocation has the time of its request', async () => {
  const { clock, store, signIn, revoke } = openFilter();
  await (await signIn()).onOutcome(answer('a', 'ann'));
  clock.now = 5000;
  const hooks = await revoke('a');
  clock.now = 10_000;
  await hooks.onOutcome({ ...answer(), status: 204 });
  for await (const entry of store.list())
    expect(entry).toMatchObject({ state: 'revoked', revokedAtMs: 1_800_000_005_000 });
});

describe('outcomes of a refresh', () => {
  test.each([302, 400, 401, 408, 429, 500, 502, 503, 504])(
    'after %i the token is free at once',
    async (status) => {
      const { forward, exchange, refresh } = openFilter();
      expect(await (await forward('a')).onOutcome({ ...answer(), status })).toEqual({});
      await exchange('a', 'b');
      expect(await refresh('a')).toBe(refused);
    },
  );

  test.each([
    ['a reset', unknown('reset'), 10_000],
    ['a time-out after 9 s', unknown('timeout'), 1000],
  ] as const)('after %s the token waits while the shop may work on it', async (_, outcome, waitMs) => {
    const { clock, forward, send, sendForm, exchange } = openFilter();
    const hooks = await forward('a');
    hooks.maySend?.();
    clock.now += 10_000 - waitMs;
    await hooks.onOutcome(outcome);
    const waiting = { rejection: 'refresh-token-unavailable', retryAfterSeconds: waitMs / 1000 };
    expect(await send('a')).toMatchObject(waiting);
    expect(await sendForm('a')).toMatchObject({ retryAfterSeconds: waitMs / 1000 });
    clock.now += waitMs;
    await exchange('a', 'b');
  });

  test('a second tab gets a Retry-After that grows to 5 s', async () => {
    const { clock, forward, send } = openFilter();
    const hooks = await forward('a');
    const busy = { rejection: 'refresh-token-busy' };
    for (const [passedMs, retryAfterSeconds] of [
      [0, 1],
      [3000, 3],
      [20_000, 5],
    ] as const) {
      clock.now = passedMs;
      expect(await send('a')).toMatchObject({ ...busy, retryAfterSeconds });
    }
    await hooks.onOutcome(answer('b'));
    expect(await send('a')).toMatchObject({ rejection: refused, reason: 'used' });
  });

  test('a refresh is not sent if more than 5 s have passed since its claim', async () => {
    const { clock, forward } = openFilter();
    const { maySend } = await forward('a');
    clock.now = 5000;
    expect(maySend?.()).toBe(true);
    clock.now = 5001;
    expect(maySend?.()).toBe(false);
  });
});

test.each([
  ['403', { ...answer(), status: 403 }, true],
  ['500', { ...answer(), status: 500 }, false],
  ['408', { ...answer(), status: 408 }, false],
  ['a reset', unknown('reset'), false],
])('after a revocation that ends with %s the token is valid: %s', async (_, outcome, isValid) => {
  for (const which of ['a', 'mine']) {
    const { signIn, revoke, refresh } = openFilter();
    await (await signIn()).onOutcome(answer('a', 'ann'));
    await (await revoke(which)).onOutcome(outcome as ReturnType<typeof answer>);
    expect(typeof (await refresh('a'))).toBe(isValid ? 'object' : 'string');
  }
});

test.each([
  [262_144, false],
  [262_145, true],
])('an answer that decodes to %i octets is withheld: %s', async (length, isWithheld) => {
  const { signIn } = openFilter();
  const body = gzipSync(`[${' '.repeat(length - 2)}]`);
  const edits = await (await signIn()).onOutcome({ ...answer(), fields: ['Content-Encoding', 'gzip'], body });
  expect(edits.rejection?.rejection).toBe(isWithheld ? 'token-answer-unreadable' : undefined);
});

describe('a used token that is sent again', () => {
  /** A login of Ann whose token `used` was refreshed to `next`, and another login with the token `elsewhere`. */
  async function stage(options: Partial<RefreshTokensOptions>, isObserved = false) {
    const staged = openFilter(undefined, options);
    await (await staged.signIn()).onOutcome(answer('used', 'ann'));
    await staged.exchange('used', 'next', isObserved);
    await (await staged.signIn()).onOutcome(answer('elsewhere', 'ann'));
    staged.events.length = 0;
    return staged;
  }

  test('end-family: its descendant is refused, another login is not', async () => {
    const { refresh, events } = await stage({ replay: 'end-family' });
    expect([await refresh('used'), await refresh('next')]).toEqual([refused, refused]);
    expect(events).toEqual(['exchange-refused-used', 'family-ended', 'exchange-refused-revoked']);
    expect(await refresh('elsewhere')).toMatchObject(forwarded);
  });

  test('end-family: a refresh of a descendant under way ends, and its new token is refused', async () => {
    const { forward, refresh } = await stage({ replay: 'end-family' });
    const underWay = await forward('next');
    await refresh('used');
    expect(await underWay.onOutcome(answer('newest'))).toEqual({});
    expect(await refresh('newest')).toBe(refused);
  });

  test('end-family: a revoked token ends no family', async () => {
    const { revoke, refresh, events } = await stage({ replay: 'end-family' });
    await (await revoke('next')).onOutcome({ ...answer(), status: 204 });
    expect(await refresh('next')).toBe(refused);
    expect(events).not.toContain('family-ended');
  });

  test.each([
    ['a success that is too long to be read', { status: 201, body: null }, true],
    ['a redirect, which may carry tokens', { status: 303 }, true],
    ['a refusal of the shop', { status: 403 }, false],
  ])('forward: %s is withheld and ends the family: %s', async (_, more, isWithheld) => {
    const { forward, refresh } = await stage({ replay: 'forward' });
    const { withholds, onOutcome } = await forward('used');
    expect(withholds?.(more.status)).toBe(isWithheld);
    const edits = await onOutcome({ ...answer('stolen'), ...more });
    expect(edits).toEqual(isWithheld ? { rejection: expect.objectContaining({ reason: 'used' }) } : {});
    expect(typeof (await refresh('next'))).toBe(isWithheld ? 'string' : 'object');
  });

  const leewayMs = 10_000;

  test('within the leeway it gets the same answer, at the same endpoint only', async () => {
    const { clock, refresh, sendForm, events } = await stage({ leewayMs });
    const { body } = answer('next');
    expect(await refresh('used')).toEqual({
      status: 201,
      fields: [
        ...['Content-Type', 'application/json', 'Content-Length', String(body.length)],
        ...['Cache-Control', 'no-store'],
      ],
      body,
    });
    expect(await sendForm('used')).toMatchObject({ rejection: refused });
    clock.now = leewayMs - 1;
    expect(isAnswer((await refresh('used')) as never)).toBe(true);
    clock.now = leewayMs;
    expect(await refresh('used')).toBe(refused);
    expect(events.filter((event) => event === 'exchange-repeated')).toHaveLength(2);
  });

  test.each(['mine', 'used', 'next'])(
    'within the leeway it is refused after a revocation of %s',
    async (which) => {
      const { revoke, refresh } = await stage({ leewayMs });
      await revoke(which);
      expect(await refresh('used')).toBe(refused);
    },
  );

  test('within the leeway it is refused after the end of its family', async () => {
    const staged = await stage({ leewayMs, replay: 'end-family' });
    staged.clock.now = leewayMs;
    await staged.exchange('next', 'newest');
    await staged.refresh('used');
    expect([await staged.refresh('next'), await staged.refresh('newest')]).toEqual([refused, refused]);
  });

  test('within the leeway another spelling is refused and ends no family', async () => {
    const { exchange, refresh } = openFilter(undefined, { leewayMs, replay: 'end-family' });
    await exchange('def50200ab', 'next');
    expect(await refresh('DEF50200AB')).toBe(refused);
    expect(await refresh('next')).toMatchObject(forwarded);
  });

  test('in observe mode it is forwarded, and no family ends', async () => {
    const { send, events } = await stage({ replay: 'end-family' }, true);
    for (const token of ['used', 'next']) {
      const hooks = (await send(token, true)) as UpstreamHooks;
      expect(await hooks.onOutcome(answer('newest'))).toEqual({});
    }
    expect(events).not.toContain('family-ended');
  });
});

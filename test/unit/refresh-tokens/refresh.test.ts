import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Method } from '../../../src/http/canonical-request.ts';
import { isAnswer } from '../../../src/http/rejection.ts';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import type { TokenEndpoint } from '../../../src/refresh-tokens/endpoints.ts';
import type { MemoryTokenStore } from '../../../src/refresh-tokens/memory-store.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import type { TokenStore } from '../../../src/refresh-tokens/token-store.ts';
import { newSubject } from './store-contract.ts';
import { answer, lifetimeMs, openFilter as open, shopEndpoints } from './token-filter.ts';

/** Delays one call of the store by 5 ms and reports it to `done`. */
function late(
  store: MemoryTokenStore,
  call: 'release' | 'record' | 'markUsed',
  done: (call: string) => void,
) {
  const usual = store[call].bind(store) as (...args: unknown[]) => unknown;
  const after = async (...args: unknown[]) => {
    await sleep(5);
    done(call);
    return usual(...args);
  };
  return { [call]: after } as Partial<TokenStore>;
}

const unreadable = { ...answer(), body: Buffer.from('<refreshToken>T</refreshToken>') };
const failed = { ...answer(), status: 500 };
const away = () => Promise.reject(new RedisUnavailable('connection'));

test('a used mark that the store did not accept is written before the next claim', async () => {
  let isAway = true;
  const { forward, refresh, events } = open((store) => {
    const markUsed = store.markUsed.bind(store);
    return { markUsed: (...args) => (isAway ? away() : sleep(5).then(() => markUsed(...args))) };
  });
  const hooks = await forward('a');
  await hooks.onOutcome(answer('b'));
  expect(events).toContain('write-delayed');
  isAway = false;
  expect(await refresh('a')).toBe('refresh-token-invalid');
});

test('if one interpretation of a token is claimed elsewhere, the others are released', async () => {
  const token = `${'q1'.repeat(8)}.${'r2'.repeat(8)}`;
  const [own, other, ...more] = createDigests().ofInterpretations(token);
  if (own === undefined || other === undefined) throw new Error('one interpretation only');
  expect(more).toEqual([]);
  const released: string[] = [];
  const { store, refresh, events } = open((memory) => late(memory, 'release', (call) => released.push(call)));
  store.claim(other, 'another', 1000);
  expect(await refresh(token)).toBe('refresh-token-busy');
  expect([released.length, events]).toEqual([2, ['exchange-refused-in-exchange']]);
  expect(await store.claim(own, 'b', 1000)).toMatchObject({ kind: 'granted' });
});

// A shop may replace the token, repeat it, or leave it out.
test.each([
  ['another token', answer('new')],
  ['the same token', answer('a')],
  ['an access token alone', { ...answer(), body: Buffer.from('{"accessToken":"x"}') }],
])('revoked while its owner is unknown: the answer with %s is withheld', async (_, answered) => {
  const { store, forward, events } = open(undefined, { subjectOf: () => undefined });
  const token = createDigests().ofToken('a');
  const by = newSubject();
  expect(store.noteRevocation(token, by, 'r')).toBe('noted');
  store.concludeRevocation(token, by, 'r', true);
  const hooks = await forward('a');
  expect(await hooks.onOutcome(answered)).toMatchObject({ rejection: { reason: 'revoked' } });
  expect(events).toContain('answer-withheld');
});

test.each(['end-family', 'forward'] as const)(
  'replay %s: the family has ended before the replayed token is answered or forwarded',
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
    if (typeof again !== 'string' && 'onOutcome' in again) await again.onOutcome(answer('c'));
    expect([isEnded, typeof again]).toEqual([true, replay === 'forward' ? 'object' : 'string']);
    expect(events).toContain('family-ended');
  },
);

test.each(['claim', 'isFamilyEnded'] as const)('token-store-unavailable if %s fails', async (call) => {
  const options = { leewayMs: 1000, replay: 'end-family' } as const;
  let isAway = false;
  const { forward, refresh, events } = open((store) => {
    const usual = store[call].bind(store) as (...args: unknown[]) => unknown;
    return { [call]: (...args: unknown[]) => (isAway ? away() : usual(...args)) };
  }, options);
  const hooks = await forward('a');
  await hooks.onOutcome(answer('b'));
  isAway = true;
  events.length = 0;
  expect(await refresh(call === 'isFamilyEnded' ? 'a' : 'c')).toBe('token-store-unavailable');
  expect(events).toEqual(['store-unavailable']);
});

test.each(['claim', 'release', 'markIndeterminate', 'markUsed'] as const)(
  'a TypeError in %s is thrown, not treated as an unavailable store',
  async (call) => {
    const mistake = () => Promise.reject(new TypeError('a mistake'));
    const { forward } = open(() => ({ [call]: mistake }));
    const outcomes = {
      claim: answer('b'),
      release: failed,
      markIndeterminate: { kind: 'unknown', fault: 'reset' },
      markUsed: answer('b'),
    } as const;
    await expect(forward('a').then((hooks) => hooks.onOutcome(outcomes[call]))).rejects.toThrow('a mistake');
  },
);

test.each(['release', 'markIndeterminate'] as const)(
  "the shop's answer reaches the client although %s fails",
  async (call) => {
    const { forward } = open(() => ({ [call]: away }));
    const hooks = await forward('a');
    const outcome = call === 'release' ? failed : { kind: 'unknown' as const, fault: 'reset' as const };
    expect(await hooks.onOutcome(outcome)).toEqual({});
  },
);

test('after a 500 the token is released before the client has its answer', async () => {
  const { forward, refresh, events } = open((store) => late(store, 'release', () => {}));
  const hooks = await forward('a');
  expect(await hooks.onOutcome(failed)).toEqual({});
  expect(events).toEqual(['exchange-granted', 'exchange-freed']);
  expect(await refresh('a')).toMatchObject({ ignoreClientAbort: 'once-sent' });
});

test('the old token is marked and the new one recorded before the client has its answer', async () => {
  const written: string[] = [];
  const note = (call: string) => written.push(call);
  const { forward, signIn, events } = open((store) => ({
    ...late(store, 'record', note),
    ...late(store, 'markUsed', note),
  }));
  const hooks = await forward('a');
  expect(await hooks.onOutcome(answer('b'))).toEqual({});
  expect(written.toSorted()).toEqual(['markUsed', 'record']);
  expect(events).toEqual(['exchange-granted', 'exchanged', 'recorded']);
  const signedIn = await signIn();
  expect(await signedIn.onOutcome(answer('c'))).toEqual({});
  expect(written).toHaveLength(3);
});

test.each(['refresh', 'sign-in'] as const)(
  'an unreadable answer is withheld, except in observe mode: %s',
  async (by) => {
    const outcomes = await Promise.all(
      [false, true].map(async (isObserved) => {
        const { forward, signIn, events } = open();
        const hooks = await (by === 'refresh' ? forward('a', isObserved) : signIn(isObserved));
        const edits = await hooks.onOutcome(unreadable);
        expect(events).toContain('answer-unreadable');
        expect(events).not.toContain('not-recorded-none');
        return edits;
      }),
    );
    expect(outcomes).toEqual([{ rejection: { rejection: 'token-answer-unreadable' } }, {}]);
  },
);

test('a refused or unknown sign-in is not read', async () => {
  const { signIn, events } = open();
  const hooks = await signIn();
  expect(await hooks.onOutcome({ ...unreadable, status: 401 })).toEqual({});
  expect(await hooks.onOutcome({ kind: 'unknown', fault: 'reset' })).toEqual({});
  expect(events).toEqual([]);
});

test('a token that is recorded late gets the rest of its lifetime', async () => {
  let isAway = true;
  const lives: number[] = [];
  const { signIn, forward, clock, events } = open((store) => {
    const record = store.record.bind(store);
    return {
      record: (token, issued) => {
        if (isAway) return away();
        lives.push(issued.lifetimeMs);
        return record(token, issued);
      },
    };
  });
  const hooks = await signIn();
  await hooks.onOutcome(answer('b'));
  expect(events).toEqual(['write-delayed', 'record-delayed']);
  isAway = false;
  clock.now = 20_000;
  await forward('another');
  expect(lives).toEqual([lifetimeMs - 20_000]);
  expect(events.slice(2)).toEqual(['recorded', 'exchange-granted']);
});

test('a request with two refresh tokens is refused; in observe mode it is forwarded and its answer recorded', async () => {
  const { post, events } = open();
  const twice = '{"refreshToken":"a","refreshToken":"b"}';
  const refusal = await post('/refresh-tokens', twice, false);
  expect(refusal).toMatchObject({ rejection: 'token-request-not-plain' });
  const observed = await post('/refresh-tokens', twice, true);
  expect(observed).toMatchObject({ observed: refusal });
  if (observed === undefined || !('onOutcome' in observed)) throw new Error('not forwarded');
  expect(await observed.onOutcome(answer('c'))).toEqual({});
  expect(events).toEqual(['refused-not-plain', 'refused-not-plain', 'recorded']);
});

describe('a path that revokes by POST and refreshes by PUT', () => {
  const { fields } = shopEndpoints.find(({ format }) => format === 'form') as TokenEndpoint;
  const endpoint = (kind: 'revoke' | 'exchange', method: Method, refreshToken: string): TokenEndpoint => ({
    ...{ kind, method, path: '/tokens', format: 'form', fields: { ...fields, refreshToken } },
  });
  const endpoints = [endpoint('revoke', 'POST', 'ended'), endpoint('exchange', 'PUT', 'refreshed')];

  test.each([
    ['ended=a', 'revocation-noted'],
    ['refreshed=a', 'exchange-granted'],
    ['ended=a&refreshed=a', 'exchange-granted'],
    ['ended=a&refreshed=b', 'refused-not-plain'],
    ['other=a', ''],
  ])('%s: %s', async (body, event) => {
    const { request, events } = open(undefined, {}, endpoints);
    await request('POST', '/tokens', body, 'application/x-www-form-urlencoded');
    expect(events.join()).toBe(event);
  });
});

test.each([
  [16_384, true],
  [16_385, false],
])('an answer of %i octets is repeated within the leeway: %s', async (length, isKept) => {
  const { forward, post } = open(undefined, { leewayMs: 600_000 });
  const { body } = answer('new');
  const padded = Buffer.concat([body, Buffer.alloc(length - body.length, ' ')]);
  await (await forward('a')).onOutcome({ ...answer('new'), body: padded });
  const again = await post('/refresh-tokens', '{"data":{"attributes":{"refreshToken":"a"}}}', false);
  expect(again !== undefined && isAnswer(again)).toBe(isKept);
});

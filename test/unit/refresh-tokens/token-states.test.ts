import { describe, expect, type TestContext, test } from 'vitest';
import type { RefreshTokensOptions } from '../../../src/refresh-tokens/context.ts';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { MemoryTokenStore } from '../../../src/refresh-tokens/memory-store.ts';
import { createDigests } from '../../../src/refresh-tokens/token-digest.ts';
import { begun } from '../../harness/begun.ts';
import { startCarelessTokenShop } from '../../harness/careless-token-shop.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { asked, defaultLifetimeMs, startDemoShop, startTokenFront, tokenClient } from './token-front.ts';

/** A shop for each test, and a clock of the store that the test moves. */
async function stage(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(await startDemoShop());
  const clock = { nowMs: 1_800_000_000_000 };
  const storeSettings = {
    lifetimeMs: defaultLifetimeMs,
    retentionMs: 'keep',
    now: () => clock.nowMs,
  } as const;
  async function start(options: Partial<RefreshTokensOptions> & { isObserved?: boolean } = {}) {
    const store = new MemoryTokenStore(storeSettings);
    const front = open(await startTokenFront(shop, store, { store, ...options }));
    return { store, front, ...tokenClient(front.port) };
  }
  /** The number of refreshes at the shop. */
  const refreshes = () => asked(shop, 'POST', '/refresh-tokens') + asked(shop, 'POST', '/token');
  /** A login that was refreshed once, and another login of the same user. */
  async function stageReplay(options: Parameters<typeof start>[0]) {
    const staged = await start(options);
    const login = await staged.signIn();
    const next = (await staged.refresh(login.refreshToken)).json.data.attributes;
    const elsewhere = await staged.signIn();
    shop.received.clear();
    return { ...staged, used: login.refreshToken, descendant: next.refreshToken, elsewhere, next };
  }
  return { open, shop, clock, storeSettings, start, refreshes, stageReplay };
}

const refused = { status: 401, code: '004', detail: 'Failed to refresh token.' };
/** Status, code and Retry-After of a refusal, as JSON:API or OAuth. */
const sayOf = ({ status, json, headers }: Awaited<ReturnType<ReturnType<typeof tokenClient>['refresh']>>) => [
  status,
  json.error ?? errorOf(json).code,
  headers.get('retry-after'),
];
const errorOf = (json: { errors: [{ status: number; code: string; detail: string }] }) => json.errors[0];

describe.concurrent('a token with two interpretations', () => {
  /** Decoders that skip dots read another token here. */
  const dotted = `${'0123456789abcdef'.repeat(2)}.${'fedcba9876543210'.repeat(2)}`;

  test('a refresh marks the known interpretation as used and releases the other', async (context) => {
    const { open, shop, storeSettings } = await stage(context);
    const careless = open(await startCarelessTokenShop());
    const store = new MemoryTokenStore(storeSettings);
    const upstream = { port: Number(new URL(careless.url).port), jwksUrl: shop.jwksUrl };
    const front = open(await startTokenFront(upstream, store, { store }));
    const [own, bare] = createDigests().ofInterpretations(dotted);
    if (own === undefined || bare === undefined) throw new Error('one interpretation only');
    const issued = { subject: null, generation: 0, family: newFamily(), lifetimeMs: defaultLifetimeMs };
    store.record(own, issued);
    expect((await tokenClient(front.port).refresh(dotted)).status).toBe(200);
    expect(await store.claim(own, 'another', 1000)).toMatchObject({ kind: 'used' });
    expect(await store.claim(bare, 'another', 1000)).toMatchObject({ kind: 'granted' });
  });
});

describe.concurrent("the contract's token table", () => {
  test('a revocation has the time of its request', async (context) => {
    const { clock, start } = await stage(context);
    const { signIn, revoke, store } = await start();
    const { refreshToken, accessToken } = await signIn();
    clock.nowMs += 5000;
    const at = clock.nowMs;
    await revoke(accessToken, refreshToken);
    clock.nowMs += 5000;
    const states: unknown[] = [];
    for await (const { state, revokedAtMs } of store.list()) states.push({ state, revokedAtMs });
    expect(states).toEqual([{ state: 'revoked', revokedAtMs: at }]);
  });

  test('expired after the default lifetime of 2628000 s, valid a millisecond before', async (context) => {
    const { clock, start, refreshes } = await stage(context);
    const { signIn, refresh } = await start();
    const [early, late] = [await signIn(), await signIn()];
    clock.nowMs += 2_628_000_000 - 1;
    expect((await refresh(early.refreshToken)).status).toBe(201);
    clock.nowMs += 1;
    expect(errorOf((await refresh(late.refreshToken)).json)).toEqual(refused);
    expect(refreshes()).toBe(1);
  });
});

describe.concurrent('outcomes of an exchange', () => {
  const answerWithinMs = 60_000;

  const failures = [302, 400, 401, 408, 429, 500, 502, 503, 504].map((status) => ({
    outcome: `${status}`,
    status,
  }));
  test.for([
    ...failures.map((row) => ({ ...row, change: {} })),
    { outcome: '503 after the work', status: 503, change: { failAfterWork: true } },
  ])('after $outcome the token is free at once', async ({ change, status }, context) => {
    const { shop, start } = await stage(context);
    const { signIn, refresh } = await start({ answerWithinMs });
    const { refreshToken } = await signIn();
    Object.assign(shop.settings, { failNext: 1, failStatus: status }, change);
    for (const each of [status, 201, 401]) expect((await refresh(refreshToken)).status).toBe(each);
  });

  test.for([
    {
      outcome: 'reset before the answer',
      change: { resetNext: 1, resetAt: 'before-answer' },
      status: 502,
      seconds: 10,
    },
    { outcome: 'reset in the body', change: { resetNext: 1, resetAt: 'mid-body' }, status: 502, seconds: 10 },
    { outcome: 'time-out', change: { latencyMs: 30_000 }, status: 504, withinMs: 1000, seconds: 6 },
  ])('after $outcome: refresh-token-unavailable with Retry-After, then 201', async (row, context) => {
    const { shop, clock, start, refreshes } = await stage(context);
    const { change, status, withinMs = answerWithinMs, seconds } = row;
    const { signIn, refresh, exchangeForm } = await start({ answerWithinMs: withinMs });
    const { refreshToken } = await signIn();
    Object.assign(shop.settings, change);
    expect((await refresh(refreshToken)).status).toBe(status);
    Object.assign(shop.settings, { latencyMs: 0 });
    const asks = refreshes();
    const said = async () => sayOf(await refresh(refreshToken));
    const code = 'refresh-token-unavailable';
    expect(await said()).toEqual([503, code, String(seconds)]);
    clock.nowMs += seconds * 1000 - 1500;
    expect(await said()).toEqual([503, code, '2']);
    expect(sayOf(await exchangeForm(refreshToken))).toEqual([503, 'temporarily_unavailable', '2']);
    expect(refreshes()).toBe(asks);
    clock.nowMs += 1500;
    expect((await refresh(refreshToken)).status).toBe(201);
    expect((await refresh(refreshToken)).status).toBe(401);
  });

  test('two tabs: one gets the pair, the other 503 with a Retry-After that grows to 5 s', async (context) => {
    const { shop, clock, start, refreshes } = await stage(context);
    const { signIn, refresh, exchangeForm } = await start({ answerWithinMs });
    const { refreshToken } = await signIn();
    shop.settings.latencyMs = 3000;
    const first = begun(refresh(refreshToken));
    await context.expect.poll(refreshes).toBe(1);
    const said = async () => sayOf(await refresh(refreshToken));
    expect(await said()).toEqual([503, 'refresh-token-busy', '1']);
    expect(sayOf(await exchangeForm(refreshToken))).toEqual([503, 'temporarily_unavailable', '1']);
    clock.nowMs += 20_000;
    expect(await said()).toEqual([503, 'refresh-token-busy', '5']);
    clock.nowMs += 40_000;
    expect(await said()).toEqual([503, 'refresh-token-busy', '5']);
    expect((await first).status).toBe(201);
    expect(refreshes()).toBe(1);
    expect(errorOf((await refresh(refreshToken)).json)).toEqual(refused);
  });

  test('a refresh is not sent if more than 5 s have passed since its claim: 503', async (context) => {
    const { start, refreshes } = await stage(context);
    let monotonicMs = 0;
    const { signIn, refresh } = await start({
      monotonicNow: () => {
        monotonicMs += 5001;
        return monotonicMs;
      },
    });
    const { refreshToken } = await signIn();
    const asks = refreshes();
    expect((await refresh(refreshToken)).status).toBe(503);
    expect(refreshes()).toBe(asks);
  });
});

describe.concurrent('outcomes of a revocation', () => {
  test.for([
    { outcome: '403', change: { failNext: 1, failStatus: 403 }, status: 403, after: 201 },
    { outcome: '500', change: { failNext: 1, failStatus: 500 }, status: 500, after: 401 },
    { outcome: '408', change: { failNext: 1, failStatus: 408 }, status: 408, after: 401 },
    { outcome: 'reset', change: { resetNext: 1, resetAt: 'before-answer' }, status: 502, after: 401 },
  ])('after $outcome the next refresh gets $after', async ({ change, status, after }, context) => {
    const { shop, start } = await stage(context);
    for (const which of ['by id', 'mine']) {
      const { signIn, refresh, revoke } = await start();
      const { refreshToken, accessToken } = await signIn();
      Object.assign(shop.settings, change);
      expect((await revoke(accessToken, which === 'mine' ? which : refreshToken)).status).toBe(status);
      expect((await refresh(refreshToken)).status).toBe(after);
    }
  });
});

describe.concurrent('a used token that is sent again', () => {
  test('end-family: its descendant gets 401 without a request to the shop, another login 201', async (context) => {
    const { refreshes, stageReplay } = await stage(context);
    const { refresh, used, descendant, elsewhere, front } = await stageReplay({ replay: 'end-family' });
    expect(errorOf((await refresh(used)).json)).toEqual(refused);
    expect(errorOf((await refresh(descendant)).json)).toEqual(refused);
    expect(refreshes()).toBe(0);
    expect((await refresh(elsewhere.refreshToken)).status).toBe(201);
    const { events } = front.filter.stats();
    expect([events['family-ended'], events['exchange-refused-revoked']]).toEqual([1, 1]);
  });

  test('end-family: a refresh of a descendant under way gets 201, its new token 401', async (context) => {
    const { shop, refreshes, stageReplay } = await stage(context);
    const { refresh, used, descendant } = await stageReplay({ replay: 'end-family' });
    shop.settings.latencyMs = 3000;
    const underWay = begun(refresh(descendant));
    await context.expect.poll(refreshes).toBe(1);
    await refresh(used);
    shop.settings.latencyMs = 0;
    const { status, json } = await underWay;
    expect(status).toBe(201);
    expect((await refresh(json.data.attributes.refreshToken)).status).toBe(401);
  });

  test('end-family: a revoked token ends no family', async (context) => {
    const { start } = await stage(context);
    const { refresh, signIn, revoke, front } = await start({ replay: 'end-family' });
    const login = await signIn();
    await revoke(login.accessToken, login.refreshToken);
    expect((await refresh(login.refreshToken)).status).toBe(401);
    expect(front.filter.stats().events['family-ended']).toBe(0);
  });

  test('forward: a success that is too long for the buffer is withheld', async (context) => {
    const { start, refreshes, stageReplay } = await stage(context);
    const { refresh, used, descendant, store } = await stageReplay({});
    const narrow = await start({ store, replay: 'forward', answerBytes: 16 });
    expect((await narrow.refresh(used)).status).toBe(401);
    expect(refreshes()).toBe(1);
    expect((await refresh(descendant)).status).toBe(401);
  });

  test('forward: a redirect, which may carry tokens, is withheld', async (context) => {
    const { shop, stageReplay } = await stage(context);
    const { refresh, used, descendant } = await stageReplay({ replay: 'forward' });
    Object.assign(shop.settings, { failNext: 1, failStatus: 303 });
    expect((await refresh(used)).status).toBe(401);
    expect((await refresh(descendant)).status).toBe(401);
  });

  test('forward: a refusal of the shop is forwarded, and the descendant stays valid', async (context) => {
    const { shop, stageReplay } = await stage(context);
    const { refresh, used, descendant } = await stageReplay({ replay: 'forward' });
    Object.assign(shop.settings, { failNext: 1, failStatus: 403 });
    expect((await refresh(used)).status).toBe(403);
    expect((await refresh(descendant)).status).toBe(201);
  });

  describe('within the leeway', () => {
    const leewayMs = 10_000;

    test('the same answer without a request to the shop, at the same endpoint only', async (context) => {
      const { clock, refreshes, stageReplay } = await stage(context);
      const { refresh, exchangeForm, used, next, descendant, front } = await stageReplay({ leewayMs });
      const again = await refresh(used);
      expect([again.status, again.json.data.attributes]).toEqual([201, next]);
      expect(again.headers.get('content-type')).toContain('json');
      expect(again.headers.get('cache-control')).toBe('no-store');
      // The answer is bound to its endpoint.
      expect((await exchangeForm(used)).json.error).toBe('invalid_grant');
      expect(refreshes()).toBe(0);
      expect((await refresh(descendant)).status).toBe(201);
      clock.nowMs += leewayMs - 1;
      expect((await refresh(used)).status).toBe(201);
      clock.nowMs += 1;
      expect((await refresh(used)).status).toBe(401);
      expect(front.filter.stats().events['exchange-repeated']).toBe(2);
    });

    test('401 after mine, and after the end of the family', async (context) => {
      const { clock, stageReplay } = await stage(context);
      const { refresh, revoke, used, next } = await stageReplay({ leewayMs });
      await revoke(next.accessToken, 'mine');
      expect((await refresh(used)).status).toBe(401);
      const staged = await stageReplay({ leewayMs, replay: 'end-family' });
      clock.nowMs += leewayMs;
      const { refreshToken } = (await staged.refresh(staged.descendant)).json.data.attributes;
      await staged.refresh(staged.used);
      expect((await staged.refresh(staged.descendant)).status).toBe(401);
      expect((await staged.refresh(refreshToken)).status).toBe(401);
    });

    test('another spelling gets 401 and ends no family', async (context) => {
      const { stageReplay } = await stage(context);
      const { refresh, used, descendant } = await stageReplay({ leewayMs, replay: 'end-family' });
      expect((await refresh(used)).status).toBe(201);
      const respelled = used === used.toUpperCase() ? used.toLowerCase() : used.toUpperCase();
      expect((await refresh(respelled)).status).toBe(401);
      expect((await refresh(descendant)).status).toBe(201);
    });
  });

  test('observe mode: 201 twice, and no family ends', async (context) => {
    const { stageReplay } = await stage(context);
    const { refresh, used, descendant, front } = await stageReplay({
      replay: 'end-family',
      isObserved: true,
    } as never);
    expect((await refresh(used)).status).toBe(201);
    expect((await refresh(descendant)).status).toBe(201);
    expect(front.filter.stats().events['family-ended']).toBe(0);
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { runTokens } from '../../src/cli/tokens.ts';
import { eventually } from '../harness/eventually.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { callShop, jsonOf, outcomeOf, type ShopCall } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { runCommand } from '../unit/cli/command-run.ts';

interface Pair {
  readonly accessToken: string;
  readonly refreshToken: string;
}

const bodyOf = (type: string, attributes: object) => ({ data: { type, attributes } });
const form = ['Content-Type: application/x-www-form-urlencoded'];

/** A client of the token endpoints. */
function clientOf(port: () => number) {
  const call = (line: string, options: ShopCall = {}) => callShop(port(), line, options);
  return {
    call,
    async signIn(username = 'sonia@shop.example'): Promise<Pair> {
      const body = bodyOf('access-tokens', { username, password: 'change123' });
      const response = await call('POST /access-tokens', { body });
      expect(response.status).toBe(201);
      return jsonOf(response).data.attributes;
    },
    exchange: (refreshToken: string) =>
      call('POST /refresh-tokens', { body: bodyOf('refresh-tokens', { refreshToken }) }),
    exchangeForm: (refreshToken: string) =>
      call('POST /token', { fields: form, body: `grant_type=refresh_token&refresh_token=${refreshToken}` }),
    revoke: (token: string, id: string) => call(`DELETE /refresh-tokens/${id}`, { token }),
  };
}

const exchangesAt = ({ received }: DemoShop) =>
  (received.byRoute.get('POST /refresh-tokens') ?? 0) + (received.byRoute.get('POST /token') ?? 0);
const configFor = (shop: DemoShop, more: object = {}) => ({
  auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference', clockTolerance: '0s' },
  ...more,
});

describe('the contract’s token table, in front of a shop that enforces none of it', () => {
  let shop: DemoShop;
  let shopward: RunningShopward;
  const { call, signIn, exchange, exchangeForm, revoke } = clientOf(() => shopward.port);

  beforeAll(async () => {
    shop = await startDemoShop();
    shopward = await startShopwardHere({ upstream: shop.url, config: configFor(shop) });
  });
  afterAll(async () => {
    await shopward?.stop();
    await shop?.close();
  });

  it('access token valid -> expired: it can no longer authenticate', async () => {
    const { accessToken } = await signIn();
    const ask = (token: string) => call('GET /orders', { token });
    expect((await ask(accessToken)).status).toBe(200);
    const now = Math.floor(Date.now() / 1000);
    expect(outcomeOf(await ask(await shop.issueToken({ exp: now - 1 })))).toBe('401 001');
    // `iat` is older than the default lifetime, which counts in spite of `exp`.
    const old = { iat: now - 28_801, nbf: now - 28_801, exp: now + 60 };
    expect(outcomeOf(await ask(await shop.issueToken(old)))).toBe('401 001');
  });

  it('refresh token valid -> used for exchange: a new access token and a new refresh token', async () => {
    const first = await signIn();
    const exchanged = await exchange(first.refreshToken);
    expect(exchanged.status).toBe(201);
    const { accessToken, refreshToken, expiresIn } = jsonOf(exchanged).data.attributes;
    expect(expiresIn).toBe(28_800);
    expect((await call('GET /orders', { token: accessToken })).status).toBe(200);

    const before = exchangesAt(shop);
    expect(jsonOf(await exchange(first.refreshToken))).toEqual({
      errors: [{ detail: 'Failed to refresh token.', status: 401, code: '004' }],
    });
    expect(exchangesAt(shop)).toBe(before);
    expect((await exchange(refreshToken)).status).toBe(201);
  });

  it('refresh token valid -> revoked, by its own user only', async () => {
    const { accessToken, refreshToken } = await signIn();
    const outsider = await signIn('karl@shop.example');
    expect(outcomeOf(await call(`DELETE /refresh-tokens/${refreshToken}`))).toBe('401 002');
    expect((await revoke(outsider.accessToken, refreshToken)).status).toBe(204);
    const { refreshToken: next } = jsonOf(await exchange(refreshToken)).data.attributes;
    expect((await revoke(accessToken, next)).status).toBe(204);
    expect(outcomeOf(await exchange(next))).toBe('401 004');
  });

  it('`mine` revokes all tokens of the user', async () => {
    const [one, two, karl] = [await signIn(), await signIn(), await signIn('karl@shop.example')];
    expect((await revoke(one.accessToken, 'mine')).status).toBe(204);
    for (const { refreshToken } of [one, two]) {
      expect(outcomeOf(await exchange(refreshToken))).toBe('401 004');
    }
    expect((await exchange(karl.refreshToken)).status).toBe(201);
  });

  it('the form endpoint answers by RFC 6749, and shares its states with the JSON:API endpoint', async () => {
    const { refreshToken } = await signIn();
    expect((await exchangeForm(refreshToken)).status).toBe(200);
    const again = await exchangeForm(refreshToken);
    expect([again.status, jsonOf(again).error]).toEqual([400, 'invalid_grant']);
    expect(again.field('content-type')).toMatch(/^application\/json/);
    expect([again.field('cache-control'), again.field('pragma')]).toEqual(['no-store', 'no-cache']);
    expect(outcomeOf(await exchange(refreshToken))).toBe('401 004');
  });

  it('the token of a company user can be exchanged once', async () => {
    const { accessToken } = await signIn('spencor@shop.example');
    const sub = JSON.parse(Buffer.from(accessToken.split('.')[1] ?? '', 'base64url').toString()).sub;
    const idCompanyUser = JSON.parse(sub).id_company_user;
    const given = await call('POST /company-user-access-tokens', {
      token: accessToken,
      body: bodyOf('company-user-access-tokens', { idCompanyUser }),
    });
    expect(given.status).toBe(201);
    const { refreshToken } = jsonOf(given).data.attributes;
    const outcomes = [await exchange(refreshToken), await exchange(refreshToken)].map(outcomeOf);
    expect(outcomes).toEqual(['201', '401 004']);
  });

  it.each([
    ['nothing', '', 400],
    ['no token', '{"data":{"type":"refresh-tokens","attributes":{}}}', 422],
  ])('a body with %s goes to the shop, which decides', async (_, body, status) => {
    const before = shop.received.total;
    expect((await call('POST /refresh-tokens', { body })).status).toBe(status);
    expect(shop.received.total).toBe(before + 1);
  });

  it('413 for a body over the limit', async () => {
    const body = bodyOf('refresh-tokens', { refreshToken: 'x'.repeat(2_100_000) });
    expect(outcomeOf(await call('POST /refresh-tokens', { body }))).toBe('413 payload-too-large');
  });

  it('no token was written to the log', () => {
    expect(shopward.output()).not.toMatch(/eyJ|def50200/);
  });
});

it('refresh token valid -> expired: 401, and the shop is not asked', async () => {
  const shop = await startDemoShop();
  const config = configFor(shop, { refreshTokens: { lifetime: '1s' } });
  const shopward = await startShopwardHere({ upstream: shop.url, config });
  try {
    const { signIn, exchange } = clientOf(() => shopward.port);
    const { refreshToken } = await signIn();
    const endsAt = Date.now() + 1000;
    await eventually('the end of its lifetime', () => Date.now() > endsAt || undefined);
    expect(outcomeOf(await exchange(refreshToken))).toBe('401 004');
    expect(exchangesAt(shop)).toBe(0);
  } finally {
    await shopward.stop();
    await shop.close();
  }
});

describe('two replicas over one Redis', () => {
  let redis: RedisProcess;
  let shop: DemoShop;
  let replicas: RunningShopward[] = [];
  let round = 0;
  const { call, signIn, exchange, exchangeForm, revoke } = clientOf(
    () => replicas[round++ % replicas.length]?.port ?? 0,
  );

  beforeAll(async () => {
    redis = await startRedisProcess();
    shop = await startDemoShop();
    const store = { url: `redis://127.0.0.1:${redis.port}`, timeout: '2s' };
    const config = configFor(shop, { store });
    replicas = await Promise.all([1, 2].map(() => startShopwardHere({ upstream: shop.url, config })));
  });
  afterEach(() => Object.assign(shop.settings, { latencyMs: 0 }));
  afterAll(async () => {
    for (const replica of replicas) await replica.stop();
    await shop?.close();
    await redis?.close();
  });

  it('of twenty parallel exchanges of one token exactly one reaches the shop', async () => {
    const { refreshToken } = await signIn();
    const before = exchangesAt(shop);
    shop.settings.latencyMs = 1000;
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, async () => outcomeOf(await exchange(refreshToken))),
    );
    // 503 during the exchange, 401 after it.
    expect(outcomes.filter((outcome) => outcome === '201')).toHaveLength(1);
    const known = ['201', '401 004', '503 refresh-token-busy'];
    expect(outcomes.filter((outcome) => !known.includes(outcome))).toEqual([]);
    expect(outcomes).toContain('503 refresh-token-busy');
    expect(exchangesAt(shop)).toBe(before + 1);
  });

  it('a token that is revoked through one replica is refused by both', async () => {
    const { accessToken, refreshToken } = await signIn();
    expect((await revoke(accessToken, refreshToken)).status).toBe(204);
    expect([await exchange(refreshToken), await exchange(refreshToken)].map(outcomeOf)).toEqual([
      '401 004',
      '401 004',
    ]);
  });

  it('`shopward tokens` lists digests, and revokes', async () => {
    const { refreshToken } = await signIn('karl@shop.example');
    const options = { config: replicas[0]?.configFile ?? '', subject: 'DE--22' };
    const listed = await runCommand((io) => runTokens('list', options, io));
    expect([listed.code, listed.out.at(-1)]).toEqual([0, '1 refresh token']);
    expect(listed.out.join()).toMatch(/ {2}valid {2}/);
    expect(listed.out.join()).not.toMatch(/def50200|DE--22/);
    expect((await runCommand((io) => runTokens('revoke', options, io))).code).toBe(0);
    expect(outcomeOf(await exchange(refreshToken))).toBe('401 004');
  });

  it.each([
    ['has gone', () => redis.kill(), () => redis.restart()],
    ['does not answer', async () => redis.pause(), async () => redis.resume()],
  ])(
    'Redis %s: exchange and revocation get 503, sign-in and other requests pass',
    async (_, leave, comeBack) => {
      const { accessToken, refreshToken } = await signIn();
      await leave();
      shop.received.clear();
      const refused = [
        await exchange(refreshToken),
        await revoke(accessToken, refreshToken),
        await revoke(accessToken, 'mine'),
      ];
      for (const response of refused) {
        expect(outcomeOf(response)).toBe('503 token-store-unavailable');
        expect(response.field('retry-after')).toMatch(/^[1-9]\d*$/);
      }
      const form = await exchangeForm(refreshToken);
      expect([form.status, jsonOf(form).error]).toEqual([503, 'temporarily_unavailable']);
      expect(shop.received.total).toBe(0);
      const meanwhile = await signIn();
      expect((await call('GET /orders', { token: meanwhile.accessToken })).status).toBe(200);
      await comeBack();
      await eventually('an exchange', async () =>
        (await exchange((await signIn()).refreshToken)).status === 201 ? true : undefined,
      );
    },
  );
});

import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { companyUserIds } from '../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { resource, send } from './client.ts';

let shop: DemoShop;
beforeAll(async () => {
  shop = await startDemoShop();
});
beforeEach(() => shop.reset());
afterAll(() => shop.close());

const sonia = { username: 'sonia@shop.example', password: 'change123' };
const formType = { 'content-type': 'application/x-www-form-urlencoded' };

async function signIn() {
  const reply = await send(shop, 'POST /access-tokens', { body: resource('access-tokens', sonia) });
  return reply.json.data.attributes;
}

/** Tokens carry fractions of a second and the library's clock does not: a fresh one would be from the future. */
function verify(token: string) {
  const keys = createRemoteJWKSet(new URL(shop.jwksUrl));
  return jwtVerify(token, keys, { algorithms: ['RS256'], audience: 'frontend', clockTolerance: 1 });
}

function exchange(refreshToken: string) {
  return send(shop, 'POST /refresh-tokens', { body: resource('refresh-tokens', { refreshToken }) });
}

describe('access tokens', () => {
  it('verify against the key set and name the customer inside a JSON string', async () => {
    const { accessToken, tokenType, expiresIn, idCompanyUser } = await signIn();
    expect([tokenType, expiresIn, idCompanyUser]).toEqual(['Bearer', 28_800, companyUserIds.sonia]);
    const { payload } = await verify(accessToken);
    expect(JSON.parse(String(payload.sub))).toMatchObject({ customer_reference: 'DE--21', id_customer: 21 });
    expect(payload).toMatchObject({
      scopes: ['customer', 'company_user'],
      jti: expect.stringMatching(/^[0-9a-f]{80}$/),
    });
    expect(Number(payload.exp) - Number(payload.iat)).toBeCloseTo(28_800);
    expect(decodeProtectedHeader(accessToken)).toEqual({ typ: 'JWT', alg: 'RS256' });
  });

  it.each([
    ['a wrong password', { ...sonia, password: 'wrong' }, 401, '003'],
    ['an unknown customer', { ...sonia, username: 'nobody@shop.example' }, 401, '003'],
    ['an empty password', { ...sonia, password: '' }, 422, '901'],
  ])('are not issued for %s', async (_, attributes, status, code) => {
    const reply = await send(shop, 'POST /access-tokens', { body: resource('access-tokens', attributes) });
    expect([reply.status, reply.json.errors[0].code]).toEqual([status, code]);
    const challenge = status === 401 ? 'Bearer realm="Access to shop API"' : null;
    expect(reply.headers.get('www-authenticate')).toBe(challenge);
  });

  it('are issued for company users to those who are', async () => {
    const ask = (idCompanyUser: string) => {
      const body = resource('company-user-access-tokens', { idCompanyUser });
      return send(shop, 'POST /company-user-access-tokens', { as: 'DE--21', body });
    };
    const { payload } = await verify((await ask(companyUserIds.sonia)).json.data.attributes.accessToken);
    expect(JSON.parse(String(payload.sub)).id_company_user).toBe(companyUserIds.sonia);
    expect((await ask(companyUserIds.karl)).json.errors[0].code).toBe('001');
  });

  it('can be made with any claims for a test', async () => {
    const { payload } = await verify(await shop.issueToken({ sub: 'x', scopes: undefined, extra: 1 }));
    expect(payload).toMatchObject({ sub: 'x', extra: 1 });
    expect(payload).not.toHaveProperty('scopes');
  });

  it('verify after a rotation only as long as the old key is published', async () => {
    const old = await shop.issueToken();
    await shop.keys.rotate();
    const [current, previous] = shop.keys.jwks().keys;
    const newer = await shop.issueToken();
    await expect(jwtVerify(newer, current ?? {}, { clockTolerance: 1 })).resolves.toBeDefined();
    await expect(jwtVerify(old, previous ?? {}, { clockTolerance: 1 })).resolves.toBeDefined();
    await shop.keys.rotate({ keepOld: false });
    await expect(verify(newer)).rejects.toMatchObject({ code: 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED' });
    await expect(verify(await shop.issueToken())).resolves.toBeDefined();
  });
});

describe('what the shop leaves to shopward', () => {
  it.each([
    ['nobody', {}, 'DE--21'],
    ['a token without a signature', { sub: '{"customer_reference":"DE--22"}' }, 'DE--22'],
    ['an expired token', { sub: '{"customer_reference":"DE--22"}', exp: 1 }, 'DE--22'],
    ['a plain subject', { sub: 'DE--5' }, 'DE--5'],
    ['a broken subject', { sub: '{' }, 'DE--21'],
    ['a subject without a customer', { sub: '{}' }, 'DE--21'],
  ])('believes %s', async (name, claims, reference) => {
    const token = new UnsecuredJWT({ ...claims }).encode();
    const headers: Record<string, string> = name === 'nobody' ? {} : { authorization: `Bearer ${token}` };
    expect((await send(shop, 'GET /customers/mine', { headers })).json.data[0].id).toBe(reference);
  });

  it('exchanges a refresh token as often as it is shown, also at once and after its revocation', async () => {
    const { refreshToken } = await signIn();
    const replies = await Promise.all([exchange(refreshToken), exchange(refreshToken)]);
    expect(replies.map((reply) => reply.status)).toEqual([201, 201]);
    expect((await send(shop, `DELETE /refresh-tokens/${refreshToken}`)).status).toBe(204);
    expect((await send(shop, 'DELETE /refresh-tokens/mine')).status).toBe(204);
    const last = await exchange(refreshToken);
    expect(last.json.data).toMatchObject({ type: 'refresh-tokens', id: null });
    await verify(last.json.data.attributes.accessToken);
  });

  it('refuses what does not open', async () => {
    const { refreshToken, accessToken } = await signIn();
    const changed = refreshToken.slice(0, -1) + (refreshToken.endsWith('0') ? '1' : '0');
    for (const token of [accessToken, 'x', changed]) {
      expect((await exchange(token)).json.errors[0]).toMatchObject({ status: 401, code: '004' });
    }
  });
});

describe('POST /token', () => {
  it('issues and exchanges by form', async () => {
    const body = new URLSearchParams({ grant_type: 'password', ...sonia }).toString();
    const first = await send(shop, 'POST /token', { body, headers: formType });
    expect(first.json).toMatchObject({ token_type: 'Bearer', expires_in: 28_800 });
    expect(first.headers.get('cache-control')).toBe('no-store');
    await verify(first.json.access_token);
    const form = { grant_type: 'refresh_token', refresh_token: first.json.refresh_token };
    const second = await send(shop, 'POST /token', {
      body: new URLSearchParams(form).toString(),
      headers: formType,
    });
    expect(second.status).toBe(200);
  });

  it('reads a multipart form too', async () => {
    const form = new FormData();
    for (const [name, value] of Object.entries({ grant_type: 'password', ...sonia })) form.set(name, value);
    const response = await fetch(`${shop.url}/token`, { method: 'POST', body: form });
    expect(response.status).toBe(200);
  });

  it.each([
    [{ grant_type: 'password', ...sonia, password: 'wrong' }, 'invalid_grant'],
    [{ grant_type: 'refresh_token', refresh_token: 'x' }, 'invalid_grant'],
    [{ grant_type: 'password' }, 'invalid_request'],
    [{ grant_type: 'refresh_token' }, 'invalid_request'],
    [{ grant_type: 'implicit' }, 'unsupported_grant_type'],
    [{}, 'invalid_request'],
  ])('refuses %j', async (form, error) => {
    const body = new URLSearchParams(form as Record<string, string>).toString();
    const reply = await send(shop, 'POST /token', { body, headers: formType });
    expect([reply.status, reply.json.error]).toEqual([400, error]);
  });
});

it('the lifetime of access tokens can be changed while it runs', async () => {
  const other = await startDemoShop();
  try {
    other.settings.accessTokenLifetimeSeconds = 3;
    const reply = await send(other, 'POST /access-tokens', { body: resource('access-tokens', sonia) });
    const { accessToken, expiresIn } = reply.json.data.attributes;
    const { iat, exp } = JSON.parse(Buffer.from(accessToken.split('.')[1], 'base64url').toString());
    expect([expiresIn, Math.round(exp - iat)]).toEqual([3, 3]);
  } finally {
    await other.close();
  }
});

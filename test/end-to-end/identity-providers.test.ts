import { afterEach, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { client, type IdentityProvider, startIdentityProvider } from '../harness/identity-provider.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { makeSigner, makeToken } from '../unit/access/signing.ts';

/** The identity provider (oidc-provider) and its client (openid-client) are real; the shop is a recording upstream. */

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function startProvider(kid: string) {
  const signer = makeSigner('RS256', kid);
  const provider = await startIdentityProvider(signer);
  cleanUps.push(() => provider.close().catch(() => {}));
  return { provider, signer };
}

async function start(auth: object): Promise<Shopward> {
  const upstream = await startRecordingUpstream(() => answer('{}', 'Content-Type: application/json\r\n'), {
    answersWhole: true,
  });
  cleanUps.push(() => upstream.close());
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: [{ match: 'GET /secret', scopes: ['customer'] }],
    config: { auth: { audience: 'shop', subject: ['sub', 'client_id'], ...auth } },
  });
  cleanUps.push(() => shopward.kill());
  return shopward;
}

const ask = async ({ port }: Shopward, token: string) => {
  const lines = ['GET /secret HTTP/1.1', 'Host: shop', 'Connection: close', `Authorization: Bearer ${token}`];
  return (await exchangeRaw(port, [...lines, '', ''].join('\r\n'))).status;
};

const introspectionOf = ({ issuer }: IdentityProvider, more: object = {}) => ({
  introspection: {
    url: `${issuer}/token/introspection`,
    ...{ clientId: client.id, clientSecret: client.secret, ttl: '0s', ...more },
  },
});

it('two providers with discovered keys: rotation and outage of one do not affect the other', async () => {
  const [a, b] = [await startProvider('same'), await startProvider('same')];
  const shopward = await start({
    keys: undefined,
    issuers: [
      { issuer: a.provider.issuer, name: 'alpha', keys: { discover: true } },
      { issuer: b.provider.issuer, name: 'beta', keys: { discover: true } },
    ],
  });
  const [tokenA, tokenB] = [await a.provider.issue('jwt'), await b.provider.issue('jwt')];
  expect([await ask(shopward, tokenA), await ask(shopward, tokenB)]).toEqual([200, 200]);

  // Both use one key id. A token signed by A passes with the issuer A only.
  const seconds = Math.floor(Date.now() / 1000);
  const claims = { sub: 'x', aud: 'shop', scope: 'customer', iat: seconds, exp: seconds + 60 };
  expect(await ask(shopward, makeToken(a.signer, { ...claims, iss: a.provider.issuer }))).toBe(200);
  expect(await ask(shopward, makeToken(a.signer, { ...claims, iss: b.provider.issuer }))).toBe(401);
  expect(await ask(shopward, makeToken(a.signer, { ...claims, iss: undefined }))).toBe(401);

  a.provider.rotate(makeSigner('RS256', 'next'));
  expect(await ask(shopward, await a.provider.issue('jwt'))).toBe(200);
  expect(await ask(shopward, tokenA)).toBe(401);
  expect(await ask(shopward, tokenB)).toBe(200);

  a.provider.rotate(makeSigner('RS256', 'third'));
  const late = await a.provider.issue('jwt');
  await a.provider.goDown();
  expect(await ask(shopward, late)).toBe(503);
  expect(await ask(shopward, await b.provider.issue('jwt'))).toBe(200);
  const ready = await fetch(`${shopward.adminUrl}/readyz`);
  expect([ready.status, await ready.text()]).toEqual([200, expect.stringContaining('keys of alpha')]);
  const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  expect(metrics).toMatch(/^shopward_keys_last_load_success\{issuer="alpha"\} 0$/m);
  expect(metrics).toMatch(/^shopward_keys_last_load_success\{issuer="beta"\} 1$/m);
  await a.provider.comeBack();
  await eventually('the keys of alpha', async () => (await ask(shopward, late)) === 200 || undefined);
});

it('opaque tokens pass until they are revoked, and get 503 while introspection is unreachable', async () => {
  const { provider } = await startProvider('k');
  const shopward = await start({ keys: undefined, issuer: provider.issuer, ...introspectionOf(provider) });
  const token = await provider.issue('opaque');
  expect(token).not.toContain('.');
  expect([await ask(shopward, token), await ask(shopward, 'invented')]).toEqual([200, 401]);
  await provider.revoke(token);
  expect(await ask(shopward, token)).toBe(401);

  const other = await provider.issue('opaque');
  await provider.goDown();
  // One failure may be due to its token; five in a row count as an outage.
  for (let i = 0; i < 5; i++) expect(await ask(shopward, other)).toBe(503);
  const ready = async () => (await fetch(`${shopward.adminUrl}/readyz`)).text();
  expect(await ready()).toContain('introspection of access tokens: unreachable');
  await provider.comeBack();
  expect(await ask(shopward, other)).toBe(200);
  expect(await ready()).not.toContain('introspection');
  expect(shopward.output()).not.toContain(other);
  const { reason } = await shopward.waitForLog(({ event }) => event === 'introspection-failed');
  expect(reason).toBe('unreachable');
});

it('one provider with JWTs and opaque tokens: keys verify the JWTs, each opaque token is introspected once', async () => {
  const { provider } = await startProvider('k');
  const shopward = await start({
    keys: { discover: true },
    issuer: provider.issuer,
    ...introspectionOf(provider, { ttl: '1m' }),
  });
  const [signed, opaque] = [await provider.issue('jwt'), await provider.issue('opaque')];
  for (let i = 0; i < 3; i++) {
    expect([await ask(shopward, signed), await ask(shopward, opaque)]).toEqual([200, 200]);
  }
  expect(provider.hits('/token/introspection')).toBe(1);
  await provider.revoke(opaque);
  expect(await ask(shopward, opaque)).toBe(200);
  shopward.signal('SIGHUP');
  await eventually('the memory to be empty', async () => (await ask(shopward, opaque)) === 401 || undefined);
});

import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { afterEach, expect, it } from 'vitest';
import { jktOf, makeProof, withProof } from '../unit/access/dpop.ts';
import { makeSigner } from '../unit/access/signing.ts';
import { client, startIdentityProvider } from '../harness/identity-provider.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startRedisProcess } from '../harness/redis-server.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** DPoP between several processes, behind other proxies, and with real clients and a real provider. */

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const signer = makeSigner('ES256');

async function start(config: { readonly auth?: object; readonly [section: string]: unknown } = {}) {
  const upstream = await startRecordingUpstream(() => answer('{}'), { answersWhole: true });
  cleanUps.push(() => upstream.close());
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: [{ match: 'GET /bound', proof: 'required' }],
    config: { ...config, auth: { proof: 'dpop', ...config.auth } },
  });
  cleanUps.push(() => shopward.stop());
  return { ...shopward, upstream, bound: shopward.issueToken({ cnf: await jktOf(signer) }) };
}

const ask = ({ port }: { readonly port: number }, fields: readonly string[]) =>
  exchangeRaw(port, ['GET /bound HTTP/1.1', 'Host: shop.example', ...fields, '', ''].join('\r\n'));

it('of two replicas that share a Redis one accepts a proof; without an answer of Redis it is 503', async () => {
  const redis = await startRedisProcess();
  cleanUps.push(() => redis.close());
  const store = { url: `redis://127.0.0.1:${redis.port}`, timeout: '300ms' };
  const [a, b] = [await start({ store }), await start({ store })];
  for (let round = 0; round < 20; round += 1) {
    const fields = withProof(a.bound, makeProof(signer, a.bound));
    const responses = await Promise.all([a, b, a, b].map((one) => ask(one, fields)));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401]);
  }
  redis.pause();
  const fields = withProof(a.bound, makeProof(signer, a.bound));
  const away = await ask(a, fields);
  redis.resume();
  expect([away.status, away.field('retry-after')]).toEqual([503, '1']);
  const line = await a.waitForLog((one) => one.rejection === 'keys-unavailable');
  expect(line.reason).toBe('proof-store');
  // Used here, whatever Redis says; a new proof passes.
  expect((await ask(a, fields)).status).toBe(401);
  const passes = async () => (await ask(a, withProof(a.bound, makeProof(signer, a.bound)))).status;
  await expect.poll(passes, { timeout: 30_000 }).toBe(200);
});

const proofFor = (token: string, htu: string) =>
  withProof(token, makeProof(signer, token, { claims: { htu } }));

it('htu is publicUrl, whatever the request says', async () => {
  const publicUrl = 'https://api.shop.example';
  const shopward = await start({ publicUrl, trustedProxies: ['127.0.0.1'] });
  const { bound } = shopward;
  expect((await ask(shopward, proofFor(bound, `${publicUrl}/bound`))).status).toBe(200);
  expect((await ask(shopward, proofFor(bound, 'http://shop.example/bound'))).status).toBe(401);
});

it('htu has scheme and host as a trusted proxy says, and the host only if trustedFields names it', async () => {
  const trustedProxies = ['127.0.0.1'];
  const named = await start({ trustedProxies, trustedFields: ['X-Forwarded-Host'] });
  const scheme = await start({ trustedProxies });
  const front = ['X-Forwarded-Proto: https', 'X-Forwarded-Host: front.example'];
  const [byFront, byHost] = ['https://front.example/bound', 'https://shop.example/bound'];
  const statusOf = async (of: typeof named, htu: string) =>
    (await ask(of, [...front, ...proofFor(of.bound, htu)])).status;
  expect([await statusOf(named, byFront), await statusOf(named, byHost)]).toEqual([200, 401]);
  expect([await statusOf(scheme, byFront), await statusOf(scheme, byHost)]).toEqual([401, 200]);
});

it('without forwardAuthorization the shop gets neither token nor proof', async () => {
  const shopward = await start({ auth: { forwardAuthorization: false } });
  const fields = withProof(shopward.bound, makeProof(signer, shopward.bound));
  expect((await ask(shopward, fields)).status).toBe(200);
  expect(shopward.upstream.bytes()).toContain('GET /bound');
  expect(shopward.upstream.bytes()).not.toMatch(/dpop|authorization/i);
});

it.each(['jwt', 'opaque'] as const)(
  'oidc-provider binds tokens, openid-client and oauth4webapi use them: %s',
  async (format) => {
    const provider = await startIdentityProvider(makeSigner('RS256', 'k'));
    cleanUps.push(() => provider.close());
    const shopward = await start({
      auth: {
        ...{ keys: { jwks: `${provider.issuer}/jwks` }, audience: 'shop', subject: ['sub', 'client_id'] },
        introspection: {
          url: `${provider.issuer}/token/introspection`,
          ...{ clientId: client.id, clientSecret: client.secret },
        },
      },
    });
    const keys = await openid.randomDPoPKeyPair('ES256');
    const DPoP = openid.getDPoPHandle(provider.config, keys);
    const token = await provider.issue(format, DPoP);
    const url = new URL('/bound', shopward.url);
    const byOpenid = () =>
      openid.fetchProtectedResource(provider.config, token, url, 'GET', undefined, undefined, { DPoP });
    expect([(await byOpenid()).status, (await byOpenid()).status]).toEqual([200, 200]);
    const options = { DPoP: oauth.DPoP({}, keys), [oauth.allowInsecureRequests]: true };
    const other = { ...options, DPoP: oauth.DPoP({}, await oauth.generateKeyPair('ES256')) };
    expect(
      (await oauth.protectedResourceRequest(token, 'GET', url, undefined, undefined, options)).status,
    ).toBe(200);
    await expect(
      oauth.protectedResourceRequest(token, 'GET', url, undefined, undefined, other),
    ).rejects.toThrow(
      expect.objectContaining({
        cause: [
          expect.objectContaining({
            scheme: 'dpop',
            parameters: expect.objectContaining({ error: 'invalid_token' }),
          }),
        ],
      }),
    );
    expect((await ask(shopward, [`Authorization: Bearer ${token}`])).status).toBe(401);
  },
);

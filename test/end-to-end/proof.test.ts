import { createHash, createHmac, X509Certificate } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { Agent, fetch } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { runVerify } from '../../src/cli/verify.ts';
import { client, startIdentityProvider } from '../harness/identity-provider.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { startRedisProcess } from '../harness/redis-server.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import {
  expiredPair,
  nextCertificate,
  nextPair,
  testCertificate,
  testKey,
  testPair,
} from '../harness/tls-fixture.ts';
import { jktOf, makeProof, withProof } from '../unit/access/dpop.ts';
import { makeSigner } from '../unit/access/signing.ts';
import { runCommand } from '../unit/cli/command-run.ts';
import { certificateFront } from './deploy/front.ts';

/** Proofs of possession (DPoP, mTLS) with several proxies, behind other proxies, and with real clients and a real provider. */

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

async function tlsFiles() {
  const folder = await mkdtemp(path.join(tmpdir(), 'shopward-mtls-'));
  cleanUps.push(() => rm(folder, { recursive: true, force: true }));
  const files = { cert: path.join(folder, 'cert'), key: path.join(folder, 'key') };
  await Promise.all([writeFile(files.cert, testCertificate), writeFile(files.key, testKey)]);
  return files;
}

const ask = ({ port }: { readonly port: number }, fields: readonly string[]) =>
  exchangeRaw(port, ['GET /bound HTTP/1.1', 'Host: shop.example', ...fields, '', ''].join('\r\n'));

it('only one of two replicas that share a Redis accepts a proof; 503 if Redis does not answer', async () => {
  const redis = await startRedisProcess();
  cleanUps.push(() => redis.close());
  const url = `redis://127.0.0.1:${redis.port}`;
  const [a, b] = [await start({ store: { url } }), await start({ store: { url } })];
  for (let round = 0; round < 20; round += 1) {
    const fields = withProof(a.bound, makeProof(signer, a.bound));
    const responses = await Promise.all([a, b, a, b].map((one) => ask(one, fields)));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401]);
  }
  const hasty = await start({ store: { url, timeout: '300ms' } });
  redis.pause();
  const fields = withProof(a.bound, makeProof(signer, a.bound));
  const away = await ask(hasty, fields);
  redis.resume();
  expect([away.status, away.field('retry-after')]).toEqual([503, '1']);
  const line = await hasty.waitForLog((one) => one.rejection === 'keys-unavailable');
  expect(line.reason).toBe('proof-store');
  // This process remembers the proof as used, whatever Redis answers; a new proof passes.
  expect((await ask(hasty, fields)).status).toBe(401);
  const passes = async () => (await ask(hasty, withProof(a.bound, makeProof(signer, a.bound)))).status;
  await expect.poll(passes, { timeout: 30_000 }).toBe(200);
});

it('`verify` accepts the challenge of the scheme DPoP where a proof is required', async () => {
  const { url, configFile: config } = await start();
  const { out } = await runCommand((io) => runVerify(url, { config, json: true }, io));
  const { checks } = JSON.parse(out.join('\n'));
  expect(checks).toContainEqual(expect.objectContaining({ name: 'GET /bound', outcome: 'ok' }));
});

const proofFor = (token: string, htu: string) =>
  withProof(token, makeProof(signer, token, { claims: { htu } }));

it('htu must name publicUrl, not the host of the request', async () => {
  const publicUrl = 'https://api.shop.example';
  const shopward = await start({ publicUrl, trustedProxies: ['127.0.0.1'] });
  const { bound } = shopward;
  expect((await ask(shopward, proofFor(bound, `${publicUrl}/bound`))).status).toBe(200);
  expect((await ask(shopward, proofFor(bound, 'http://shop.example/bound'))).status).toBe(401);
});

it('htu must have the scheme that a trusted proxy sends, and its host only if trustedFields names the field', async () => {
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

describe('auth.proofNonceSecret', () => {
  const proofNonceSecret = 'a-secret-of-at-least-thirty-two-characters';
  const asked = ({ port }: { readonly port: number }, token: string, claims: object = {}) =>
    ask({ port }, withProof(token, makeProof(signer, token, { claims })));
  /** The nonce of this secret for the window of five minutes that is `windows` after the present one. */
  const nonceOf = (secret: string, windows: number) => {
    const window = Math.floor(Date.now() / 300_000) + windows;
    return createHmac('sha256', secret).update(`dpop-nonce ${window}`).digest('base64url');
  };

  it('replicas accept the nonces of each other, and no others', async () => {
    const [a, b] = [await start({ auth: { proofNonceSecret } }), await start({ auth: { proofNonceSecret } })];
    const first = await asked(a, a.bound);
    const nonce = first.field('dpop-nonce');
    expect([first.status, first.field('cache-control')]).toEqual([401, 'no-store']);
    expect(first.field('www-authenticate')).toMatch(/^DPoP .*error="use_dpop_nonce"/);
    for (const replica of [a, b, a]) {
      const response = await asked(replica, replica.bound, { nonce });
      expect([response.status, response.field('dpop-nonce')]).toEqual([200, undefined]);
    }
    const { length } = a.log();
    for (const wrong of [
      ...[nonceOf(proofNonceSecret, -3), nonceOf(proofNonceSecret, 3), nonceOf('', 0)],
      ...[nonceOf('another-secret-of-thirty-two-characters', 0), `${nonce} `, [nonce], ''],
    ]) {
      const response = await asked(a, a.bound, { nonce: wrong });
      expect(response.field('www-authenticate')).toContain('error="use_dpop_nonce"');
    }
    expect(
      a
        .log()
        .slice(length)
        .map(({ reason }) => reason),
    ).toEqual(Array(7).fill('proof-nonce'));
    expect(a.output()).not.toContain(proofNonceSecret);
  });

  it('a valid nonce does not save an old or used proof, and every DPoP challenge has a nonce', async () => {
    const shopward = await start({ auth: { proofNonceSecret } });
    const bare = await ask(shopward, []);
    const nonce = bare.field('dpop-nonce');
    expect(bare.field('www-authenticate')).toMatch(/^DPoP /);
    const old = await asked(shopward, shopward.bound, { nonce, iat: Math.floor(Date.now() / 1000) - 70 });
    expect(old.field('www-authenticate')).toContain('error="invalid_dpop_proof"');
    // Another one if a window of five minutes has just ended.
    expect(old.field('dpop-nonce')).toMatch(/^[\w-]{43}$/);
    const fields = withProof(shopward.bound, makeProof(signer, shopward.bound, { claims: { nonce } }));
    expect([(await ask(shopward, fields)).status, (await ask(shopward, fields)).status]).toEqual([200, 401]);
  });
});

it.each(['jwt', 'opaque'] as const)(
  'oidc-provider binds tokens, openid-client and oauth4webapi use them: %s',
  async (format) => {
    const provider = await startIdentityProvider(makeSigner('RS256', 'k'));
    cleanUps.push(() => provider.close());
    const shopward = await start({
      auth: {
        proofNonceSecret: 'a-secret-of-at-least-thirty-two-characters',
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
    const byOauth = async (key: oauth.CryptoKeyPair) => {
      const options = { DPoP: oauth.DPoP({}, key), [oauth.allowInsecureRequests]: true };
      const request = () => oauth.protectedResourceRequest(token, 'GET', url, undefined, undefined, options);
      await expect(request()).rejects.toSatisfy(oauth.isDPoPNonceError);
      return request();
    };
    expect((await byOauth(keys)).status).toBe(200);
    const parameters = expect.objectContaining({ error: 'invalid_token' });
    await expect(byOauth(await oauth.generateKeyPair('ES256'))).rejects.toThrow(
      expect.objectContaining({ cause: [expect.objectContaining({ scheme: 'dpop', parameters })] }),
    );
    expect((await ask(shopward, [`Authorization: Bearer ${token}`])).status).toBe(401);
  },
);

/** Sends a client certificate, and does not check that of the server. */
function fetchWith(certificate: object): openid.CustomFetch {
  const dispatcher = new Agent({ connect: { ...certificate, rejectUnauthorized: false } });
  cleanUps.push(() => dispatcher.close());
  return async (url, { headers, method, body }) =>
    (await fetch(url, {
      headers,
      method,
      body: body?.toString() ?? null,
      dispatcher,
    })) as unknown as Response;
}

it.each(['jwt', 'opaque'] as const)(
  'oidc-provider binds tokens to certificates, openid-client sends them: %s',
  async (format) => {
    const provider = await startIdentityProvider(makeSigner('RS256', 'k'), {
      ...testPair,
    });
    cleanUps.push(() => provider.close());
    const shopward = await start({
      listen: { tls: await tlsFiles() },
      auth: {
        ...{ proof: 'mtls', keys: { jwks: `${provider.issuer}/jwks` } },
        ...{ audience: 'shop', subject: ['sub', 'client_id'] },
        introspection: {
          url: `${provider.issuer}/token/introspection`,
          ...{ clientId: client.id, clientSecret: client.secret },
        },
      },
    });
    const send = fetchWith(nextPair);
    const token = await provider.issue(format, undefined, send);
    const url = new URL(`https://127.0.0.1:${shopward.port}/bound`);
    const byOpenid = (by: openid.CustomFetch) => {
      const config = new openid.Configuration(provider.config.serverMetadata(), client.id);
      config[openid.customFetch] = by;
      return openid.fetchProtectedResource(config, token, url, 'GET');
    };
    expect((await byOpenid(send)).status).toBe(200);
    for (const other of [{}, expiredPair])
      await expect(byOpenid(fetchWith(other))).rejects.toThrow(
        expect.objectContaining({
          cause: [
            expect.objectContaining({ parameters: expect.objectContaining({ error: 'invalid_token' }) }),
          ],
        }),
      );
  },
);

it.skipIf(certificateFront === undefined)(
  'mtls behind HAProxy, which sends Client-Cert: 200 for the bound certificate, 401 for another, none or a forged field',
  async () => {
    const shopward = await start({
      auth: { proof: 'mtls' },
      ...{ trustedProxies: ['127.0.0.1'], trustedFields: ['Client-Cert'] },
    });
    const front = await certificateFront?.(shopward);
    cleanUps.push(async () => front?.close());
    const { raw } = new X509Certificate(nextCertificate);
    const digest = createHash('sha256').update(raw).digest('base64url');
    const Authorization = `Bearer ${shopward.issueToken({ cnf: { 'x5t#S256': digest } })}`;
    const send = async (certificate: object, more: Record<string, string> = {}) => {
      const options = {
        method: 'GET',
        headers: { Authorization, ...more },
        body: null,
        redirect: 'manual',
      } as const;
      return (await fetchWith(certificate)(`https://127.0.0.1:${front?.port}/bound`, options)).status;
    };
    const forged = { 'Client-Cert': `:${raw.toString('base64')}:` };
    const [own, other] = [nextPair, expiredPair];
    await expect.poll(() => send(own), { timeout: 30_000 }).toBe(200);
    expect([await send(other), await send(other, forged), await send({}), await send({}, forged)]).toEqual([
      401, 401, 401, 401,
    ]);
  },
);

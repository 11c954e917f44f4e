import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type EchoUpstream, startEchoUpstream } from '../harness/echo-upstream.ts';
import { listen } from '../harness/listen.ts';
import { callShop, outcomeOf } from '../harness/shop-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { makeHmacToken, makeSigner, makeToken, publicJwk, publicPem } from '../unit/access/signing.ts';

const secret = 'a shared secret of more than thirty-two octets';
const signers = {
  RS256: makeSigner('RS256', 'rs'),
  PS256: makeSigner('PS256', 'ps'),
  ES256: makeSigner('ES256', 'es'),
  EdDSA: makeSigner('EdDSA', 'ed'),
};
type Name = keyof typeof signers;
const names = Object.keys(signers) as Name[];
const jwkSet = JSON.stringify({
  keys: names.map((name) => publicJwk(signers[name], { use: 'sig', alg: name })),
});
const claims = () => {
  const now = Math.floor(Date.now() / 1000);
  return { sub: 'DE--21', iat: now - 1, exp: now + 600 };
};

let folder: string;
let upstream: EchoUpstream;
let keyServer: Awaited<ReturnType<typeof listen>>;
const at = (name: string) => path.join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-keys-'));
  for (const name of names) await writeFile(at(`${name}.pem`), publicPem(signers[name]));
  await writeFile(at('one.jwk.json'), JSON.stringify(publicJwk(signers.RS256, { alg: 'RS256' })));
  await writeFile(at('set.json'), jwkSet);
  upstream = await startEchoUpstream();
  keyServer = await listen(
    createServer((_, response) => response.setHeader('Content-Type', 'application/json').end(jwkSet)),
  );
});
afterAll(async () => {
  await keyServer.close();
  await upstream.close();
  await rm(folder, { recursive: true, force: true });
});

/** Sources of public keys, with the algorithms that each can serve. */
const sources: readonly (readonly [string, () => object, readonly Name[]])[] = [
  ['PEM files', () => ({ files: names.map((name) => at(`${name}.pem`)) }), names],
  ['a JWK file', () => ({ files: [at('one.jwk.json')] }), ['RS256']],
  ['a file with a key set', () => ({ files: [at('set.json')] }), names],
  ['a key set at a URL', () => ({ jwks: `${keyServer.url}/keys` }), names],
];

describe.each(sources)('keys of %s', (_, keys, algorithms) => {
  it(`${algorithms.join(', ')} are accepted; another key, algorithm or an expired token is 401`, async () => {
    const auth = { algorithms, keys: keys() };
    const shopward = await startShopwardHere({
      upstream: `http://127.0.0.1:${upstream.port}`,
      config: { auth },
      rows: ['GET /secret'],
    });
    const ask = (token: string) => callShop(shopward.port, 'GET /secret', { token }).then(outcomeOf);
    try {
      for (const name of algorithms) {
        const signer = signers[name];
        expect([name, await ask(makeToken(signer, claims()))]).toEqual([name, '200']);
        // Another key of the same kind, an expired token, no signature, and the public key used as an HMAC secret.
        expect(await ask(makeToken(makeSigner(name, signer.kid), claims()))).toBe('401 001');
        expect(await ask(makeToken(signer, { ...claims(), exp: 1 }))).toBe('401 001');
        expect(await ask(makeToken(signer, claims(), { alg: 'none' }))).toBe('401 001');
        expect(await ask(makeHmacToken(publicPem(signer), claims()))).toBe('401 001');
      }
      for (const name of names.filter((each) => !algorithms.includes(each))) {
        expect(await ask(makeToken(signers[name], claims()))).toBe('401 001');
      }
    } finally {
      await shopward.stop();
    }
  });
});

it('a shared secret: HS256 is accepted; another secret or algorithm is 401', async () => {
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { auth: { algorithms: ['HS256'], keys: { secret: '${JWT_SECRET}' } } },
    env: { JWT_SECRET: secret },
    rows: ['GET /secret'],
  });
  const ask = (token: string) => callShop(shopward.port, 'GET /secret', { token }).then(outcomeOf);
  try {
    expect(await ask(makeHmacToken(secret, claims()))).toBe('200');
    expect(await ask(makeHmacToken(`${secret}x`, claims()))).toBe('401 001');
    expect(await ask(makeToken(signers.RS256, claims()))).toBe('401 001');
    expect(shopward.output()).not.toContain(secret);
  } finally {
    await shopward.stop();
  }
});

describe('a subject claim that is JSON', () => {
  const sub = JSON.stringify({ customer_reference: 'DE--21', id_customer: 21 });
  const subjectLines = (shopward: RunningShopward) =>
    shopward.log().filter(({ event }) => event === 'subject-is-json');
  const start = (auth: object) =>
    startShopwardHere({
      upstream: `http://127.0.0.1:${upstream.port}`,
      config: { auth },
      rows: ['GET /secret'],
    });

  it('is reported once in the log, with the setting that selects the user', async () => {
    const shopward = await start({});
    for (const jti of ['1', '2', '3']) {
      const token = shopward.issueToken({ sub, jti });
      expect((await callShop(shopward.port, 'GET /secret', { token })).status).toBe(200);
    }
    expect(subjectLines(shopward)).toEqual([
      expect.objectContaining({
        level: 'warn',
        setting: 'auth.subject',
        msg: 'the claim sub is JSON: name the user in it, such as auth.subject: sub.customer_reference',
      }),
    ]);
    expect(shopward.output()).not.toContain('DE--21');
    await shopward.stop();
  });

  it.each([
    ['the setting selects a member', { subject: 'sub.customer_reference' }, sub],
    ['the claim is plain text', {}, 'DE--21'],
  ])('is not reported if %s', async (_, auth, claim) => {
    const shopward = await start(auth);
    const token = shopward.issueToken({ sub: claim });
    expect((await callShop(shopward.port, 'GET /secret', { token })).status).toBe(200);
    expect(subjectLines(shopward)).toEqual([]);
    await shopward.stop();
  });
});

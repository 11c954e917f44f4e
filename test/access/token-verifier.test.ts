import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import {
  encode,
  makeHmacToken,
  makeSigner,
  makeToken,
  publicJwk,
  publicPem,
  signSegments,
} from './signing.ts';
import { createStubKeySource, verificationKey } from './stub-key-source.ts';
import {
  claims,
  createVerifier,
  ec,
  ed,
  identity,
  invalid,
  nowSeconds,
  type Options,
  otherRsa,
  pss,
  rsa,
  secret,
} from './verifier-setup.ts';

describe('good tokens', () => {
  it.each([
    ['RS256, no kid, several keys', makeToken(rsa, claims)],
    ['PS256', makeToken(pss, claims)],
    ['ES256', makeToken(ec, claims)],
    ['EdDSA', makeToken(ed, claims)],
    ['HS256', makeHmacToken(secret, claims)],
    ['a kid that only keys without one can answer', makeToken(rsa, claims, { kid: 'of-old' })],
    ['typ at+jwt', makeToken(rsa, claims, { typ: 'at+jwt' })],
    ['no typ', makeToken(rsa, claims, { typ: undefined })],
  ])('%s', async (_, token) => {
    expect(await createVerifier().verifier.verify(token)).toEqual(identity);
  });

  it('tries the keys in turn where the token names none', async () => {
    const keySource = createStubKeySource([verificationKey(otherRsa), verificationKey(rsa)]);
    const { verifier } = createVerifier({ keySource });
    expect(await verifier.verify(makeToken(rsa, claims))).toEqual(identity);
    expect(await verifier.verify(makeToken(otherRsa, claims))).toEqual(identity);
  });
});

describe('signature', () => {
  const good = makeToken(rsa, claims);
  const [header = '', payload = ''] = good.split('.');
  it.each([
    ['of another key', makeToken(otherRsa, claims)],
    ['of another payload', `${header}.${encode({ ...claims, sub: 'DE--1' })}.${good.split('.')[2]}`],
    ['of another token', `${header}.${payload}.${makeToken(rsa, { ...claims, sub: 'x' }).split('.')[2]}`],
    ['short', `${header}.${payload}.AAAA`],
    ['ES256 of zeros', `${encode({ alg: 'ES256', kid: 'ec' })}.${payload}.${'A'.repeat(86)}`],
    ['ES256 in DER length', `${encode({ alg: 'ES256', kid: 'ec' })}.${payload}.${'A'.repeat(96)}`],
    ['EdDSA of zeros', `${encode({ alg: 'EdDSA', kid: 'ed' })}.${payload}.${'A'.repeat(86)}`],
    [
      'PS256 under an RS256 header',
      makeToken({ ...pss, alg: 'PS256' }, claims, { alg: 'RS256', kid: undefined }),
    ],
  ])('%s', async (_, token) => {
    expect(await createVerifier().verifier.verify(token)).toEqual(invalid('signature'));
  });

  it('comes before the claims: an expired forgery is a forgery', async () => {
    const token = makeToken(otherRsa, { ...claims, exp: 1 });
    expect(await createVerifier().verifier.verify(token)).toEqual(invalid('signature'));
  });
});

describe('algorithm confusion', () => {
  const rsaOnly = { algorithms: ['RS256'], keySource: createStubKeySource([verificationKey(rsa)]) };
  const both = { algorithms: ['RS256', 'HS256'], keySource: createStubKeySource([verificationKey(rsa)]) };
  const spki = rsa.publicKey.export({ type: 'spki', format: 'der' });
  const none = (alg: unknown) => `${encode({ alg })}.${encode(claims)}.AAAA`;
  it.each<[string, Options, string, string]>([
    ['none', {}, none('none'), 'algorithm'],
    ['None', {}, none('None'), 'algorithm'],
    ['nOnE', {}, none('nOnE'), 'algorithm'],
    ['NONE', {}, none('NONE'), 'algorithm'],
    ['empty', {}, none(''), 'algorithm'],
    ['null', {}, none(null), 'algorithm'],
    ['an array', {}, none(['RS256']), 'algorithm'],
    ['in lower case', {}, none('rs256'), 'algorithm'],
    ['not configured', rsaOnly, makeToken(ec, claims), 'algorithm'],
    ['HS256 with the PEM as secret', rsaOnly, makeHmacToken(publicPem(rsa), claims), 'algorithm'],
    ['HS256 with the PEM, HS256 allowed', both, makeHmacToken(publicPem(rsa), claims), 'unknown-key'],
    ['HS256 with the DER, HS256 allowed', both, makeHmacToken(spki, claims), 'unknown-key'],
    ['HS256 with the JWK', both, makeHmacToken(JSON.stringify(publicJwk(rsa)), claims), 'unknown-key'],
    ['ES256 under the kid of an EdDSA key', {}, makeToken(ec, claims, { kid: 'ed' }), 'unknown-key'],
    [
      'RS256 signed by a key that is for PS256 only',
      {},
      makeToken({ ...pss, alg: 'RS256' }, claims),
      'unknown-key',
    ],
  ])('%s', async (_, options, token, reason) => {
    expect(await createVerifier(options).verifier.verify(token)).toEqual(invalid(reason));
  });
});

describe('header', () => {
  const raw = (header: string) => signSegments(rsa, encode(header), encode(claims));
  it.each([
    ['no JSON', raw('x'), 'malformed'],
    ['an array', raw('[]'), 'malformed'],
    ['null', raw('null'), 'malformed'],
    ['a byte order mark', raw('\ufeff{"alg":"RS256"}'), 'malformed'],
    [
      'invalid UTF-8',
      signSegments(
        rsa,
        Buffer.from('{"alg":"RS256","x":"\xff"}', 'latin1').toString('base64url'),
        encode(claims),
      ),
      'malformed',
    ],
    ['no alg', raw('{}'), 'algorithm'],
    ['the last alg counts', raw('{"alg":"RS256","alg":"none"}'), 'algorithm'],
    ['crit', raw('{"alg":"RS256","crit":["x"],"x":1}'), 'critical'],
    ['empty crit', raw('{"alg":"RS256","crit":[]}'), 'critical'],
    ['b64 false', raw('{"alg":"RS256","crit":["b64"],"b64":false}'), 'critical'],
    ['b64 without crit', raw('{"alg":"RS256","b64":false}'), 'critical'],
    ['b64 true', raw('{"alg":"RS256","b64":true}'), 'critical'],
    ['kid null', raw('{"alg":"RS256","kid":null}'), 'malformed'],
    ['kid object', raw('{"alg":"RS256","kid":{}}'), 'malformed'],
    ['kid number', raw('{"alg":"RS256","kid":1}'), 'malformed'],
  ])('%s', async (_, token, reason) => {
    expect(await createVerifier().verifier.verify(token)).toEqual(invalid(reason));
  });

  it.each(['../../etc/passwd', "' OR 1=1", 'a\u0000', 'x'.repeat(5_000), '__proto__', 'constructor'])(
    'finds no key for the kid %j',
    async (kid) => {
      const keySource = createStubKeySource([verificationKey(ec)]);
      const { verifier } = createVerifier({ keySource });
      expect(await verifier.verify(makeToken(ec, claims, { kid }))).toEqual(invalid('unknown-key'));
    },
  );

  it('takes no key out of the token, and goes nowhere for one', async () => {
    let hits = 0;
    const canary = createServer((_, response) => {
      hits++;
      response.end(JSON.stringify({ keys: [publicJwk(thief)] }));
    }).listen(0, '127.0.0.1');
    await once(canary, 'listening');
    const url = `http://127.0.0.1:${(canary.address() as AddressInfo).port}/`;
    const thief = makeSigner('RS256', 'thief');
    const header = { jwk: publicJwk(thief), jku: url, x5u: url, x5c: ['MIIB'], x5t: 'x', kid: url };
    const { verifier } = createVerifier({ keySource: createStubKeySource([verificationKey(ec)]) });
    expect(await verifier.verify(makeToken(thief, claims, header))).toEqual(invalid('unknown-key'));
    const guessing = createVerifier({ keySource: createStubKeySource([verificationKey(rsa)]) });
    expect(await guessing.verifier.verify(makeToken(thief, claims, header))).toEqual(invalid('signature'));
    canary.close();
    expect(hits).toBe(0);
  });

  it('asks for no key where the header is refused', () => {
    const { verifier, keySource } = createVerifier();
    expect(verifier.verify(makeToken(rsa, claims, { alg: 'none' }))).toEqual(invalid('algorithm'));
    expect(keySource.asked).toBe(0);
  });
});

describe('claims', () => {
  const payload = (text: string) => signSegments(rsa, encode({ alg: 'RS256' }), encode(text));
  it.each([
    ['no JSON', payload('foo'), 'malformed'],
    ['an array', payload('[]'), 'malformed'],
    ['a byte order mark', payload(`\ufeff${JSON.stringify(claims)}`), 'malformed'],
    ['a deep nest', payload('['.repeat(8_000)), 'malformed'],
    ['exp 1e999', payload('{"sub":"a","exp":1e999}'), 'claims'],
    ['expired', makeToken(rsa, { ...claims, exp: nowSeconds }), 'expired'],
    ['no exp', makeToken(rsa, { ...claims, exp: undefined }), 'no-expiry'],
    ['nobody', makeToken(rsa, { ...claims, sub: undefined }), 'subject'],
  ])('%s', async (_, token, reason) => {
    expect(await createVerifier().verifier.verify(token)).toEqual(invalid(reason));
  });

  it.each<[string, Options, object, string]>([
    ['issuer', { issuer: 'https://shop.example' }, { iss: 'https://other.example' }, 'issuer'],
    ['audience', { audience: 'frontend' }, { aud: 'backend' }, 'audience'],
    ['age', { maxTokenAgeMs: 1_000 }, { iat: nowSeconds - 2 }, 'too-old'],
    ['age unknown', { maxTokenAgeMs: 1_000 }, { iat: undefined }, 'no-issue-time'],
    ['subject path', { subject: 'sub.customer_reference' }, {}, 'subject'],
  ])('%s as configured', async (_, options, more, reason) => {
    const { verifier } = createVerifier(options);
    expect(await verifier.verify(makeToken(rsa, { ...claims, ...more }))).toEqual(invalid(reason));
  });

  it('reads a shop token: dates with microseconds, a JSON string as sub, aud, no iss', async () => {
    const sub = JSON.stringify({ id_company_user: null, customer_reference: 'DE--21', id_customer: 21 });
    const dates = { iat: nowSeconds - 0.123456, nbf: nowSeconds - 0.123456, exp: nowSeconds + 28_799.876544 };
    const token = makeToken(rsa, {
      aud: 'frontend',
      jti: 'f'.repeat(80),
      sub,
      scopes: ['customer'],
      ...dates,
    });
    const { verifier } = createVerifier({ subject: 'sub.customer_reference', maxTokenAgeMs: 28_800_000 });
    expect(await verifier.verify(token)).toMatchObject({ subject: 'DE--21', scopes: ['customer'] });
  });
});

it('says nothing of a token in a refusal', async () => {
  const { verifier } = createVerifier();
  const canary = 'canary-7f3a';
  const tokens = [
    makeToken(otherRsa, { ...claims, sub: canary }),
    makeToken(rsa, { ...claims, exp: 1, sub: canary }),
    makeToken(rsa, { ...claims, sub: { canary } }),
    makeToken(ec, claims, { kid: canary }),
    signSegments(rsa, encode(`{"alg":"RS256","x":"${canary}"`), encode(canary)),
  ];
  for (const token of tokens) {
    const text = JSON.stringify(await verifier.verify(token));
    expect(text).toContain('reason');
    expect(text).not.toContain('canary');
    expect(token.split('.').some((segment) => text.includes(segment))).toBe(false);
  }
});

it('never takes none as an algorithm', () => {
  expect(() => createVerifier({ algorithms: ['none'] })).toThrow(TypeError);
});

describe('a signature that no key fits', () => {
  const own = makeSigner('RS256', 'k1');
  const bad = makeToken({ ...otherRsa, kid: 'k1' }, claims);
  const nameless = makeToken(otherRsa, claims);
  const ask = async (token: string, newer: object = { keys: [] }) => {
    let renewals = 0;
    const source = createStubKeySource([verificationKey(own), verificationKey(ec)]);
    const keySource = {
      ...source,
      renew: () => {
        renewals += 1;
        return newer as never;
      },
    };
    const { verifier } = createVerifier({ keySource });
    return [await verifier.verify(token), renewals];
  };

  it('is bad where the token names its key; else there may be a newer one', async () => {
    expect(await ask(bad)).toEqual([invalid('signature'), 0]);
    expect(await ask(nameless)).toEqual([invalid('signature'), 1]);
    expect(await ask(nameless, { keys: [verificationKey(otherRsa)] })).toEqual([identity, 1]);
    const away = { rejection: 'keys-unavailable', reason: 'keys', retryAfterSeconds: 3 };
    expect(await ask(nameless, { retryAfterSeconds: 3 })).toEqual([away, 1]);
  });

  it('and a fault of ours is no refusal', async () => {
    const broken = { ...verificationKey(ec), material: {} as never };
    const { verifier } = createVerifier({ keySource: createStubKeySource([broken]) });
    await expect(verifier.verify(makeToken(ec, claims))).rejects.toThrow(TypeError);
  });
});

it('nothing is remembered where nothing may be, and a closed verifier forgets', async () => {
  const { verifier } = createVerifier({ maxRememberedTokens: 0 });
  expect(await verifier.verify(makeToken(ec, claims))).toEqual(identity);
  verifier.forgetAll();
  expect(verifier.status()).toEqual({ remembered: 0, verifying: 0 });
  const remembering = createVerifier().verifier;
  await remembering.verify(makeToken(ec, claims));
  expect(remembering.status().remembered).toBe(1);
  remembering.close();
  expect(remembering.status().remembered).toBe(0);
});

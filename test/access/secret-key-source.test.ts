import { describe, expect, it } from 'vitest';
import { SecretKeySource, validateSecret } from '../../src/access/secret-key-source.ts';
import { TokenVerifier } from '../../src/access/token-verifier.ts';
import { makeHmacToken, makeSigner, publicPem } from './signing.ts';

const secret = 'x'.repeat(40);

describe('validateSecret', () => {
  it.each<[string, string, string[], string[]]>([
    ['long enough', 'x'.repeat(32), ['HS256'], []],
    ['counted in bytes', '\u00fc'.repeat(16), ['HS256'], []],
    ['too short', 'x'.repeat(31), ['HS256'], ['is 31 bytes long; HS256 needs 32 or more']],
    ['too short for one', secret, ['HS256', 'HS512'], ['is 40 bytes long; HS512 needs 64 or more']],
    ['no HMAC', secret, ['RS256'], ['cannot verify RS256; a secret is for HS256, HS384, HS512']],
    [
      'a public key',
      publicPem(makeSigner('RS256')),
      ['HS256'],
      ['is PEM, not a secret; name public keys in auth.keys.files'],
    ],
  ])('%s', (_, text, algorithms, problems) => {
    expect(validateSecret({ secret: text, algorithms })).toEqual(problems);
  });
});

describe('SecretKeySource', () => {
  it('verifies with the configured hashes only', async () => {
    const keySource = new SecretKeySource({ secret, algorithms: ['HS256'] });
    const options = { algorithms: ['HS256', 'HS384'], clockToleranceMs: 0, subject: 'sub', now: () => 0 };
    const verifier = new TokenVerifier({ ...options, keySource });
    const claims = { sub: 'a', exp: 10 };
    const invalid = (reason: string) => ({ rejection: 'access-token-invalid', reason });
    expect(await verifier.verify(makeHmacToken(secret, claims))).toHaveProperty('subject', 'a');
    expect(await verifier.verify(makeHmacToken(`${secret}x`, claims))).toEqual(invalid('signature'));
    expect(await verifier.verify(makeHmacToken('', claims))).toEqual(invalid('signature'));
    expect(await verifier.verify(makeHmacToken(secret, claims, { alg: 'HS384' }))).toEqual(
      invalid('unknown-key'),
    );
  });

  it('replaced, a token of the old secret is refused, also where it was remembered', async () => {
    const keySource = new SecretKeySource({ secret, algorithms: ['HS256'] });
    const options = { algorithms: ['HS256'], clockToleranceMs: 0, subject: 'sub', now: () => 0 };
    const verifier = new TokenVerifier({ ...options, keySource });
    const old = makeHmacToken(secret, { sub: 'a', exp: 10 });
    expect(await verifier.verify(old)).toHaveProperty('subject', 'a');
    expect(verifier.status().remembered).toBe(1);
    const next = 'y'.repeat(40);
    keySource.replace(next);
    expect(await verifier.verify(old)).toEqual({ rejection: 'access-token-invalid', reason: 'signature' });
    expect(await verifier.verify(makeHmacToken(next, { sub: 'b', exp: 10 }))).toHaveProperty('subject', 'b');
  });

  it('does not start with a secret that can be guessed, and does not quote it', () => {
    const create = () => new SecretKeySource({ secret: 'hunter2', algorithms: ['HS256'] });
    expect(create).toThrow('auth.keys.secret is 7 bytes long; HS256 needs 32 or more');
    expect(create).not.toThrow('hunter2');
  });
});

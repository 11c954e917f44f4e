import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { hasRocaFingerprint, readJwks, readKeyDocument } from '../../../src/access/key-document.ts';
import { makeSigner, publicJwk, publicPem, type Signer } from './signing.ts';

const rsa = makeSigner('RS256', 'rsa');
const ec = makeSigner('ES256', 'ec');
const ec384 = makeSigner('ES384', 'ec384');
const ed = makeSigner('EdDSA', 'ed');
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'];
const pem = (key: KeyObject, type: 'spki' | 'pkcs1' = 'spki') =>
  key.export({ type, format: 'pem' }).toString();
const privatePem = ({ privateKey }: Signer, type: 'pkcs8' | 'sec1') =>
  privateKey.export({ type, format: 'pem' }).toString();
const weakRsa = (modulusLength: number, publicExponent = 65_537) =>
  generateKeyPairSync('rsa', { modulusLength, publicExponent }).publicKey;

/** A self-signed certificate, made for this test. Its private key is deleted. */
const certificate = `-----BEGIN CERTIFICATE-----
MIIBgjCCASmgAwIBAgIUNrPy0uC+psZkQOKpFWQR1k8+VTcwCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMc2hvcC5leGFtcGxlMB4XDTI2MTEyMTA5MTk1N1oXDTM2MTEx
ODA5MTk1N1owFzEVMBMGA1UEAwwMc2hvcC5leGFtcGxlMFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEJeJ/06T7BejM3rb6xRHEXvQMdudlvEAADDbI+7ITe/baiBkP
CtHi1d+9LLz6+YX5jfF4Ek8Nt2qkQiSoBEFwl6NTMFEwHQYDVR0OBBYEFAAoEBqw
QwYCohI6Go8JSrG13PSpMB8GA1UdIwQYMBaAFAAoEBqwQwYCohI6Go8JSrG13PSp
MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgbcxqZzlYmnh47iM4
YpU9K2NwYD7MNfvj2qITx0/i10ACIAwXYxLcUbe73O4YiR8/iNy8LozyJShHMdpv
ITUbWaNu
-----END CERTIFICATE-----
`;

function read(document: unknown) {
  const { keys, problems, ignored } = readKeyDocument(
    typeof document === 'string' ? document : JSON.stringify(document),
    algorithms,
  );
  return { keys: keys.map((key) => `${key.kid} ${key.algorithms}`), problems, ignored };
}

describe('usable keys', () => {
  const rsaAlgorithms = 'RS256,PS256';
  it.each<[string, unknown, string[]]>([
    ['JWK', publicJwk(rsa), [`rsa ${rsaAlgorithms}`]],
    ['JWK with alg', publicJwk(rsa, { alg: 'RS256' }), ['rsa RS256']],
    ['JWK for verification', publicJwk(ec, { use: 'sig', key_ops: ['verify'] }), ['ec ES256']],
    ['JWK without kid', { ...publicJwk(ed), kid: undefined }, ['undefined EdDSA']],
    ['JWK set', { keys: [publicJwk(rsa), publicJwk(ec)] }, [`rsa ${rsaAlgorithms}`, 'ec ES256']],
    ['JWK with x5u and x5c', publicJwk(ec, { x5u: 'http://127.0.0.1:9/', x5c: ['MIIB'] }), ['ec ES256']],
    ['SPKI', publicPem(rsa), [`undefined ${rsaAlgorithms}`]],
    ['PKCS #1', pem(rsa.publicKey, 'pkcs1'), [`undefined ${rsaAlgorithms}`]],
    ['two blocks', `old:\n${publicPem(ec)}\nnew:\n${publicPem(ed)}`, ['undefined ES256', 'undefined EdDSA']],
    ['CRLF', publicPem(ec).replaceAll('\n', '\r\n'), ['undefined ES256']],
    ['certificate', certificate, ['undefined ES256']],
  ])('%s', (_, document, keys) => {
    expect(read(document)).toEqual({ keys, problems: [], ignored: [] });
  });
});

describe('keys that are refused', () => {
  it.each<[string, unknown, string]>([
    ['private JWK', { ...rsa.privateKey.export({ format: 'jwk' }) }, 'the key contains private parts'],
    ['private EC JWK', { ...ec.privateKey.export({ format: 'jwk' }) }, 'the key contains private parts'],
    ['private PEM', privatePem(rsa, 'pkcs8'), 'PEM block 1 is a private key'],
    ['private EC PEM', privatePem(ec, 'sec1'), 'PEM block 1 is a private key'],
    ['RSA 1024', weakRsa(1024).export({ format: 'jwk' }), 'the key is an RSA key of 1024 bits'],
    ['RSA 2040', pem(weakRsa(2040)), 'PEM block 1 is an RSA key of 2040 bits'],
    ['RSA exponent 3', pem(weakRsa(2048, 3)), 'PEM block 1 has an RSA exponent'],
    ['RSA exponent 1', { ...publicJwk(rsa), e: 'AQ' }, 'the key has an RSA exponent'],
    ['RSA exponent even', { ...publicJwk(rsa), e: 'AQAC' }, 'the key has an RSA exponent'],
    ['RSA exponent above 65537', { ...publicJwk(rsa), e: 'AQAD' }, 'the key has an RSA exponent other than'],
    ['RSA exponent of 2048 bits', { ...publicJwk(rsa), e: publicJwk(rsa).n }, 'the key has an RSA exponent'],
    ['alg of another type', publicJwk(rsa, { alg: 'ES256' }), 'the key has an alg that does not fit'],
    ['alg of another curve', publicJwk(ec, { alg: 'ES384' }), 'the key has an alg that does not fit'],
    [
      'alg that is no text',
      publicJwk(ec, { alg: { toString: 1 } }),
      'the key has an alg that is not a string',
    ],
    ['kid that is no string', { keys: [publicJwk(ec, { kid: 7 })] }, 'key 1 has a kid'],
    ['point off the curve', publicJwk(ec, { y: publicJwk(makeSigner('ES256')).y }), 'the key cannot be read'],
    ['no members', { keys: [{ kty: 'RSA', kid: 'x' }] }, 'key 1 (kid "x") cannot be read'],
    ['a type that is no text', { keys: [{ kty: 7 }] }, 'key 1 is not a JSON Web Key'],
    ['no key at all', { keys: [null] }, 'key 1 is not a JSON Web Key'],
    ['broken PEM', publicPem(rsa).replace(/MII/, 'AAA'), 'PEM block 1 cannot be read'],
    ['other PEM', '-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----', 'PEM block 1 is a X509 CRL'],
    ['empty file', '', 'contains neither PEM nor JSON'],
    ['half a PEM', publicPem(rsa).slice(0, 200), 'contains neither PEM nor JSON'],
    ['half a JSON', JSON.stringify(publicJwk(rsa)).slice(0, 200), 'is not valid JSON'],
    ['other JSON', { a: 1 }, 'is not a JSON Web Key or a set of them'],
  ])('%s', (_, document, problem) => {
    const { keys, problems } = read(document);
    expect(keys).toEqual([]);
    expect(problems).toEqual([expect.stringContaining(problem)]);
  });

  it.each(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'])(
    'a public key with the private member %s',
    (name) => {
      const { keys, problems } = read({ ...publicJwk(rsa), [name]: 'AQAB' });
      expect([keys, problems]).toEqual([[], [expect.stringContaining('contains private parts')]]);
    },
  );

  it('problems quote no part of the key', () => {
    const jwk = rsa.privateKey.export({ format: 'jwk' });
    const texts = JSON.stringify([read(jwk).problems, read(`{"d":"${jwk.d}"`).problems]);
    expect(texts).not.toContain(jwk.d?.slice(0, 12));
    expect(texts).not.toContain(jwk.n?.slice(0, 12));
  });
});

describe('keys for another purpose', () => {
  it.each<[string, object, string]>([
    ['symmetric', { kty: 'oct', k: 'AAAA', kid: 'x' }, 'key 1 (kid "x") is a symmetric key'],
    ['encryption', publicJwk(rsa, { use: 'enc' }), 'key 1 (kid "rsa") has a use other than sig'],
    ['key_ops', publicJwk(rsa, { key_ops: ['encrypt'] }), 'key 1 (kid "rsa") has key_ops without verify'],
    ['key_ops no array', publicJwk(rsa, { key_ops: 'verify' }), 'key 1 (kid "rsa") has key_ops without'],
    ['encryption alg', publicJwk(rsa, { alg: 'RSA-OAEP' }), 'key 1 (kid "rsa") has an alg that'],
    ['alg not configured', publicJwk(rsa, { alg: 'RS512' }), 'key 1 (kid "rsa") fits none of the configured'],
    ['curve not configured', publicJwk(ec384), 'key 1 (kid "ec384") fits none of the configured'],
    ['X25519', generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' }), 'key 1 fits none of the'],
  ])('%s: ignored, the other key is used', (_, jwk, text) => {
    const { keys, problems, ignored } = read({ keys: [jwk, publicJwk(ec)] });
    expect(keys).toEqual(['ec ES256']);
    expect({ problems, ignored }).toEqual({ problems: [], ignored: [expect.stringContaining(text)] });
  });

  it('reads no symmetric key from a set, even if HS256 is configured', () => {
    const set = { keys: [{ kty: 'oct', k: Buffer.alloc(32, 1).toString('base64url'), alg: 'HS256' }] };
    expect(readJwks(set, ['HS256', 'RS256']).keys).toEqual([]);
  });
});

describe('hasRocaFingerprint', () => {
  const primorial = Array.from({ length: 168 }, (_, n) => n)
    .filter((n) => n > 2 && [2, 3, 5, 7, 11].every((prime) => n === prime || n % prime !== 0))
    .reduce((product, prime) => product * BigInt(prime), 1n);

  it('true for a modulus of two primes with the ROCA structure', () => {
    const structured = (k: bigint, a: number) => k * primorial + BigInt(65_537) ** BigInt(a);
    expect(
      hasRocaFingerprint(structured(0x1234_5678_9abc_def1n, 7) * structured(0xfedc_ba98_7654_3211n, 11)),
    ).toBe(true);
  });

  it('false for keys that Node generates', () => {
    for (let i = 0; i < 3; i++) {
      const modulus = Buffer.from(String(publicJwk(makeSigner('RS256')).n), 'base64url').toString('hex');
      expect(hasRocaFingerprint(BigInt(`0x${modulus}`))).toBe(false);
    }
  });
});

describe('a key document', () => {
  it('refuses more than 100 keys', () => {
    const keys = (count: number) => ({ keys: Array.from({ length: count }, () => publicJwk(ec)) });
    expect(readKeyDocument(JSON.stringify(keys(100)), algorithms).keys).toHaveLength(100);
    const { isKeySet, problems } = readKeyDocument(JSON.stringify(keys(101)), algorithms);
    expect([isKeySet, problems]).toEqual([false, ['contains more than 100 keys']]);
  });

  it('names a key by the first 64 characters of its kid', () => {
    const named = (length: number) => read({ keys: [{ kty: 'RSA', kid: 'k'.repeat(length) }] }).problems;
    expect(named(64)).toEqual([`key 1 (kid "${'k'.repeat(64)}") cannot be read as a public key`]);
    expect(named(65)).toEqual(named(64));
  });

  it('isKeySet is true for a set, a JWK and a PEM text, false for four other texts', () => {
    const isSet = (text: string) => readKeyDocument(text, algorithms).isKeySet;
    const sets = ['{"keys":[]}', ` \n${JSON.stringify(publicJwk(ec))}`, publicPem(ec)];
    expect([...sets, '{"keys":{}}', '{', '', '{"a":1}'].filter(isSet)).toEqual(sets);
  });

  it('refuses an RSA key of more than 8192 bits', () => {
    const longest = Buffer.alloc(1024, 0xff).toString('base64url');
    expect(read({ kty: 'RSA', e: 'AQAB', n: longest }).problems).toEqual([]);
    const n = Buffer.alloc(1025, 0xff).toString('base64url');
    expect(read({ kty: 'RSA', e: 'AQAB', n }).problems).toEqual([
      'the key is an RSA key of 8200 bits; at most 8192 are allowed',
    ]);
  });
});

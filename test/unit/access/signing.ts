import { createHmac, generateKeyPairSync, type KeyObject, sign as signOctets } from 'node:crypto';

/** A real key pair, generated for one test file. */
export interface Signer {
  readonly alg: string;
  readonly kid?: string;
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

const generators: Record<string, () => { publicKey: KeyObject; privateKey: KeyObject }> = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

export function makeSigner(alg: string, kid?: string): Signer {
  const generate = generators[alg];
  if (generate === undefined) throw new Error(`no generator for ${alg}`);
  return { alg, ...(kid === undefined ? {} : { kid }), ...generate() };
}

export function publicJwk(signer: Signer, more: object = {}): Record<string, unknown> {
  const kid = signer.kid === undefined ? {} : { kid: signer.kid };
  return { ...signer.publicKey.export({ format: 'jwk' }), ...kid, ...more };
}

export function publicPem(signer: Signer): string {
  return signer.publicKey.export({ type: 'spki', format: 'pem' }).toString();
}

/** A signed token with these claims. `header` overwrites members of the header; `undefined` removes one. */
export function makeToken(signer: Signer, claims: object = {}, header: object = {}): string {
  const kid = signer.kid === undefined ? {} : { kid: signer.kid };
  return signSegments(signer, encode({ typ: 'JWT', alg: signer.alg, ...kid, ...header }), encode(claims));
}

/** Signs any two texts, also those of tokens that a library refuses to make. */
export function signSegments(signer: Signer, header: string, payload: string): string {
  const input = `${header}.${payload}`;
  return `${input}.${signature(signer, Buffer.from(input)).toString('base64url')}`;
}

function signature({ alg, privateKey: key }: Signer, input: Buffer): Buffer {
  if (alg === 'EdDSA') return signOctets(null, input, key);
  if (alg.startsWith('PS')) return signOctets('sha256', input, { key, padding: 6, saltLength: 32 });
  return signOctets(`sha${alg.slice(2)}`, input, { key, dsaEncoding: 'ieee-p1363' });
}

export function makeHmacToken(
  secret: string | Buffer,
  claims: object,
  header: object = { alg: 'HS256' },
): string {
  const input = `${encode(header)}.${encode(claims)}`;
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
}

export function encode(value: object | string): string {
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
}

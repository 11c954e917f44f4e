import { createPublicKey, hash, type KeyObject, type webcrypto } from 'node:crypto';
import type { VerificationKey } from './key-source.ts';
import { hasRocaFingerprint } from './roca.ts';
import { isObject } from './token-json.ts';

/** A good key; or one that is not for us (another use or algorithm); or one that nobody should use. */
export type KeyVerdict =
  | { readonly key: VerificationKey }
  | { readonly ignored: string }
  | { readonly problem: string };

/** Checks one member of a JWK set (RFC 7517 section 4). The verdict names no part of the key. */
export function validateJwk(jwk: unknown, algorithms: readonly string[]): KeyVerdict {
  if (!isObject(jwk) || typeof jwk.kty !== 'string') return { problem: 'is not a JSON Web Key' };
  const { kty, kid, use, key_ops: keyOps, alg } = jwk;
  if (kty === 'oct') return { ignored: 'is a symmetric key; only auth.keys.secret may hold one' };
  if (privateMembers.some((name) => Object.hasOwn(jwk, name))) {
    return { problem: 'holds private parts; publish and configure public keys only' };
  }
  if (kid !== undefined && typeof kid !== 'string') return { problem: 'has a kid that is not a string' };
  if (alg !== undefined && typeof alg !== 'string') return { problem: 'has an alg that is not a string' };
  if (use !== undefined && use !== 'sig') return { ignored: 'has a use other than sig' };
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.includes('verify'))) {
    return { ignored: 'has key_ops without verify' };
  }
  const material = readPublicKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' });
  return material === undefined
    ? { problem: 'cannot be read as a public key' }
    : validateKeyMaterial(material, kid, alg, algorithms);
}

/** Checks one PEM block: SPKI, PKCS #1 public key, or an X.509 certificate (whose dates and chain do not count). */
export function validatePem(label: string, pem: string, algorithms: readonly string[]): KeyVerdict {
  if (label.endsWith('PRIVATE KEY')) return { problem: 'is a private key; configure public keys only' };
  if (!publicLabels.includes(label)) return { problem: `is a ${label}, not a public key or a certificate` };
  const material = readPublicKey(pem);
  return material === undefined
    ? { problem: 'cannot be read as a public key' }
    : validateKeyMaterial(material, undefined, undefined, algorithms);
}

const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const publicLabels = ['PUBLIC KEY', 'RSA PUBLIC KEY', 'CERTIFICATE'];

function validateKeyMaterial(
  material: KeyObject,
  kid: string | undefined,
  alg: string | undefined,
  algorithms: readonly string[],
): KeyVerdict {
  const possible = possibleAlgorithms(material);
  if (alg !== undefined && !possible.includes(alg)) {
    return signatureAlgorithms.includes(alg)
      ? { problem: 'has an alg that does not fit its type' }
      : { ignored: 'has an alg that shopward does not know' };
  }
  const allowed = algorithms.filter((name) => possible.includes(name) && (alg === undefined || alg === name));
  if (allowed.length === 0)
    return { ignored: `fits none of the configured algorithms (${algorithms.join(', ')})` };
  const weakness = material.asymmetricKeyType === 'rsa' ? rsaWeakness(material) : undefined;
  if (weakness !== undefined) return { problem: weakness };
  const fingerprint = hash('sha256', material.export({ type: 'spki', format: 'der' }), 'base64url');
  return { key: { kid, algorithms: allowed, material, fingerprint } };
}

/** Type and curve -> algorithms (RFC 7518 section 3.1, RFC 8037 section 3.1, RFC 9864 section 2.2). */
function possibleAlgorithms(material: KeyObject): readonly string[] {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = material;
  if (type === 'rsa') return ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
  if (type === 'ed25519') return ['EdDSA', 'Ed25519'];
  const algorithm = type === 'ec' ? curveAlgorithms.get(details?.namedCurve ?? '') : undefined;
  return algorithm === undefined ? [] : [algorithm];
}

const curveAlgorithms = new Map([
  ['prime256v1', 'ES256'],
  ['secp384r1', 'ES384'],
  ['secp521r1', 'ES512'],
]);

/** Every `auth.algorithms` value for which keys are public; `none` is not among them and never will be. */
export const signatureAlgorithms: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

function rsaWeakness(material: KeyObject): string | undefined {
  const { modulusLength = 0, publicExponent = 0n } = material.asymmetricKeyDetails ?? {};
  if (modulusLength < 2048)
    return `is an RSA key of ${modulusLength} bits; 2048 are the least (RFC 7518 section 3.3)`;
  if (publicExponent < 65537n || publicExponent % 2n === 0n)
    return 'has an RSA exponent other than 65537 or more';
  const modulus = Buffer.from(material.export({ format: 'jwk' }).n ?? '', 'base64url').toString('hex');
  if (hasRocaFingerprint(BigInt(`0x${modulus}`)))
    return 'was made by a broken generator (ROCA, CVE-2017-15361)';
  return undefined;
}

function readPublicKey(input: Parameters<typeof createPublicKey>[0]): KeyObject | undefined {
  try {
    return createPublicKey(input);
  } catch {
    return undefined;
  }
}

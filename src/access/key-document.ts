import { createPublicKey, hash, type KeyObject, type webcrypto } from 'node:crypto';
import { isObject, parseJson } from '../lib/json.ts';
import { decodeText, readOnce } from '../lib/watched-file.ts';
import { maxCandidates, mergeKeys, type VerificationKey } from './key-source.ts';

/** The keys of one file or response. Texts name a key by its position and `kid`, never by its parts. */
interface KeyDocument {
  readonly keys: readonly VerificationKey[];
  readonly problems: readonly string[];
  /** Keys for another use; no reason to refuse the document. */
  readonly ignored: readonly string[];
  /** False for anything but PEM, a JWK or a JWK set. */
  readonly isKeySet: boolean;
}

/** Reads and checks key files without using their keys. `shopward check` calls it, too. */
export async function readKeyFiles(files: readonly string[], algorithms: readonly string[]) {
  const documents = await Promise.all(
    files.map(async (file) => ({ file, ...(await readKeyFile(file, algorithms)) })),
  );
  const { keys, ambiguousKids } = mergeKeys(documents.flatMap((document) => document.keys));
  /** `file`: undefined if the problem is in all files together. */
  const problems: { file: string | undefined; text: string }[] = [];
  for (const one of documents) for (const text of one.problems) problems.push({ file: one.file, text });
  const ignored = documents.flatMap(({ file, ignored }) => ignored.map((text) => ({ file, text })));
  for (const kid of ambiguousKids) {
    problems.push({ file: undefined, text: `two different keys have the kid ${JSON.stringify(kid)}` });
  }
  if (problems.length === 0 && keys.length === 0)
    problems.push({ file: undefined, text: 'no key here fits a configured algorithm' });
  if (problems.length === 0 && keys.length > maxCandidates)
    problems.push({ file: undefined, text: `${keys.length} keys; at most ${maxCandidates} are allowed` });
  return { keys, problems, ignored };
}

/** Bytes; a larger file is not a key file. */
export const maxKeyFileBytes = 256 * 1024;

async function readKeyFile(file: string, algorithms: readonly string[]): Promise<KeyDocument> {
  const read = await readOnce(file, maxKeyFileBytes);
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  return 'fault' in decoded ? unusable(decoded.fault) : readKeyDocument(decoded.text, algorithms);
}

/** Maximum number of keys of one document. Reading and checking a key takes a tenth of a millisecond, and shops have a handful. */
const maxKeys = 100;

/** Exported for its tests. */
export function readKeyDocument(text: string, algorithms: readonly string[]): KeyDocument {
  return text.trimStart().startsWith('{') ? readJson(text, algorithms) : readPem(text, algorithms);
}

function readJson(text: string, algorithms: readonly string[]): KeyDocument {
  const value = parseJson(text);
  if (value === undefined) return unusable('is not valid JSON');
  return isObject(value) && 'kty' in value
    ? gather([{ name: 'the key', verdict: validateJwk(value, algorithms) }])
    : readJwks(value, algorithms);
}

/** Reads a JWK set (RFC 7517 section 5) of at most 100 keys; a larger one is refused as a whole. */
export function readJwks(value: unknown, algorithms: readonly string[]): KeyDocument {
  if (!isObject(value) || !Array.isArray(value.keys))
    return unusable('is not a JSON Web Key or a set of them');
  if (value.keys.length > maxKeys) return unusable(`contains more than ${maxKeys} keys`);
  return gather(
    value.keys.map((jwk: unknown, index) => ({
      name: nameOf(jwk, index),
      verdict: validateJwk(jwk, algorithms),
    })),
  );
}

function readPem(text: string, algorithms: readonly string[]): KeyDocument {
  const blocks = [...text.matchAll(pemBlock)];
  if (blocks.length === 0) return unusable('contains neither PEM nor JSON');
  return gather(
    blocks.map(([pem, label = ''], index) => ({
      name: `PEM block ${index + 1}`,
      verdict: validatePem(label, pem, algorithms),
    })),
  );
}

const pemBlock = /-----BEGIN ([A-Z0-9 ]{1,40})-----[A-Za-z0-9+/=\s]*-----END \1-----/g;

function gather(checked: readonly { name: string; verdict: KeyVerdict }[]): KeyDocument {
  const keys: VerificationKey[] = [];
  const problems: string[] = [];
  const ignored: string[] = [];
  for (const { name, verdict } of checked) {
    if ('key' in verdict) keys.push(verdict.key);
    else if ('problem' in verdict) problems.push(`${name} ${verdict.problem}`);
    else ignored.push(`${name} ${verdict.ignored}`);
  }
  return { keys, problems, ignored, isKeySet: true };
}

function nameOf(jwk: unknown, index: number): string {
  const kid =
    isObject(jwk) && typeof jwk.kid === 'string' ? ` (kid ${JSON.stringify(jwk.kid.slice(0, 64))})` : '';
  return `key ${index + 1}${kid}`;
}

function unusable(problem: string): KeyDocument {
  return { keys: [], problems: [problem], ignored: [], isKeySet: false };
}

/** A good key, a key for another use or algorithm, or a key that is not safe to use. */
type KeyVerdict =
  | { readonly key: VerificationKey }
  | { readonly ignored: string }
  | { readonly problem: string };

/** Checks one member of a JWK set (RFC 7517 section 4). The verdict names no part of the key. Exported for its tests. */
export function validateJwk(jwk: unknown, algorithms: readonly string[]): KeyVerdict {
  if (!isObject(jwk) || typeof jwk.kty !== 'string') return { problem: 'is not a JSON Web Key' };
  const { kty, kid, use, key_ops: keyOps, alg } = jwk;
  if (kty === 'oct') return { ignored: 'is a symmetric key; only auth.keys.secret may be one' };
  if (privateMembers.some((name) => Object.hasOwn(jwk, name))) {
    return { problem: 'contains private parts; publish and configure public keys only' };
  }
  if (kid !== undefined && typeof kid !== 'string') return { problem: 'has a kid that is not a string' };
  if (alg !== undefined && typeof alg !== 'string') return { problem: 'has an alg that is not a string' };
  if (use !== undefined && use !== 'sig') return { ignored: 'has a use other than sig' };
  if (keyOps !== undefined && !(Array.isArray(keyOps) && keyOps.includes('verify'))) {
    return { ignored: 'has key_ops without verify' };
  }
  return validatePublicKey({ key: jwk as webcrypto.JsonWebKey, format: 'jwk' }, kid, alg, algorithms);
}

/** Checks one PEM block: SPKI, PKCS #1 public key, or an X.509 certificate (its dates and its chain are not checked). */
function validatePem(label: string, pem: string, algorithms: readonly string[]): KeyVerdict {
  if (label.endsWith('PRIVATE KEY')) return { problem: 'is a private key; configure public keys only' };
  if (!publicLabels.includes(label)) return { problem: `is a ${label}, not a public key or a certificate` };
  return validatePublicKey(pem, undefined, undefined, algorithms);
}

/** A JSON Web Key with one of these members is not public. */
export const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const publicLabels = ['PUBLIC KEY', 'RSA PUBLIC KEY', 'CERTIFICATE'];

function validatePublicKey(
  input: Parameters<typeof createPublicKey>[0],
  kid: string | undefined,
  alg: string | undefined,
  algorithms: readonly string[],
): KeyVerdict {
  const material = readPublicKey(input);
  if (material === undefined) return { problem: 'cannot be read as a public key' };
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

/** The asymmetric algorithms that `auth.algorithms` may name; never `none`. Exported for its tests. */
export const signatureAlgorithms: readonly string[] = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

function rsaWeakness(material: KeyObject): string | undefined {
  const { modulusLength = 0, publicExponent = 0n } = material.asymmetricKeyDetails ?? {};
  if (modulusLength < 2048)
    return `is an RSA key of ${modulusLength} bits; at least 2048 are required (RFC 7518 section 3.3)`;
  // Each bit of modulus and exponent makes every verification slower. Identity providers use 2048 to 4096 bits, and 65537.
  if (modulusLength > 8192) return `is an RSA key of ${modulusLength} bits; at most 8192 are allowed`;
  if (publicExponent !== 65537n) return 'has an RSA exponent other than 65537';
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

/**
 * Whether an RSA modulus looks as if the generator of CVE-2017-15361 made it. Its primes are powers of 65537 modulo a
 * primorial, so the modulus is such a power modulo every small prime, too. One good modulus in 2^28 looks like that. Exported
 * for its tests.
 */
export function hasRocaFingerprint(modulus: bigint): boolean {
  return smallPrimes.every((prime) => powersOf65537(prime).has(Number(modulus % BigInt(prime))));
}

const smallPrimes = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107,
  109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
];

function powersOf65537(prime: number): Set<number> {
  const powers = new Set<number>();
  for (let power = 1; !powers.has(power); power = (power * 65537) % prime) powers.add(power);
  return powers;
}

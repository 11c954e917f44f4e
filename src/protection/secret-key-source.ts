import { createSecretKey, hash, type KeyObject } from 'node:crypto';
import { createKeySet } from './key-set.ts';
import type { KeySource, VerificationKey } from './key-source.ts';

export interface SecretKeySourceOptions {
  /** `auth.keys.secret`; its UTF-8 octets are the key. */
  readonly secret: string;
  /** HS256, HS384, HS512. */
  readonly algorithms: readonly string[];
}

/** Octets of hash output: the least length of a key (RFC 7518 section 3.2). */
const hashLengths = new Map([
  ['HS256', 32],
  ['HS384', 48],
  ['HS512', 64],
]);

export const secretAlgorithms: readonly string[] = [...hashLengths.keys()];

/** What is wrong with a secret, one text each; never a part of it. */
export function judgeSecret({ secret, algorithms }: SecretKeySourceOptions): readonly string[] {
  // A public key as HMAC secret is known to everybody.
  if (secret.includes('-----BEGIN ')) return ['is PEM, not a secret; name public keys in auth.keys.files'];
  const length = Buffer.byteLength(secret);
  return algorithms.flatMap((algorithm) => {
    const least = hashLengths.get(algorithm);
    if (least === undefined)
      return [`cannot verify ${algorithm}; a secret is for ${secretAlgorithms.join(', ')}`];
    return length < least ? [`is ${length} bytes long; ${algorithm} needs ${least} or more`] : [];
  });
}

/**
 * One shared secret for HMAC.
 *
 * @throws TypeError where `judgeSecret` finds a problem.
 */
export function createSecretKeySource(options: SecretKeySourceOptions): KeySource {
  const problem = judgeSecret(options)[0];
  if (problem !== undefined) throw new TypeError(`auth.keys.secret ${problem}`);
  const secret = createSecretKey(options.secret, 'utf8');
  const set = createKeySet(options.algorithms.map((algorithm) => hmacKey(secret, algorithm)));
  return {
    keysFor: (header) => ({ keys: set.find(header) }),
    renew: () => [],
    onChange: () => () => {},
    start: async () => {},
    close: () => {},
    status: () => ({
      kind: 'secret',
      keys: 1,
      unusableKeys: 0,
      loads: 1,
      failures: 0,
      lastSuccessMs: undefined,
      lastError: undefined,
    }),
  };
}

/** One key per algorithm, imported once: a `KeyObject` would be imported anew for each token. */
function hmacKey(secret: KeyObject, algorithm: string): VerificationKey {
  const imported = { name: 'HMAC', hash: `SHA-${algorithm.slice(2)}` };
  const material = secret.toCryptoKey(imported, false, ['verify']);
  return { kid: undefined, algorithms: [algorithm], material, fingerprint: hash('sha256', algorithm) };
}

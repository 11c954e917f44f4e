import { createSecretKey, hash, type KeyObject } from 'node:crypto';
import { createKeyChange } from './key-change.ts';
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
export function validateSecret({ secret, algorithms }: SecretKeySourceOptions): readonly string[] {
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

export interface SecretKeySource extends KeySource {
  /** Another secret in its place: tokens of the old one are invalid from now on. Throws as the creation does. */
  replace(secret: string): void;
}

/**
 * One shared secret for HMAC.
 *
 * @throws TypeError where `validateSecret` finds a problem.
 */
export function createSecretKeySource({ secret, algorithms }: SecretKeySourceOptions): SecretKeySource {
  const change = createKeyChange();
  let loads = 0;
  const load = (text: string) => {
    const problem = validateSecret({ secret: text, algorithms })[0];
    if (problem !== undefined) throw new TypeError(`auth.keys.secret ${problem}`);
    const material = createSecretKey(text, 'utf8');
    loads++;
    return createKeySet(algorithms.map((algorithm) => hmacKey(material, algorithm, loads)));
  };
  let set = load(secret);
  return {
    keysFor: (header) => ({ keys: set.find(header) }),
    renew: () => ({ keys: [] }),
    onChange: change.onChange,
    replace(text) {
      set = load(text);
      change.emit();
    },
    start: async () => {},
    close: () => {},
    status: () => ({
      kind: 'secret',
      keys: 1,
      unusableKeys: 0,
      loads,
      failures: 0,
      lastSuccessMs: undefined,
      lastError: undefined,
    }),
  };
}

/** One key per algorithm, imported once: a `KeyObject` would be imported anew for each token. */
function hmacKey(secret: KeyObject, algorithm: string, load: number): VerificationKey {
  const imported = { name: 'HMAC', hash: `SHA-${algorithm.slice(2)}` };
  const material = secret.toCryptoKey(imported, false, ['verify']);
  // Of no octet of the secret, which could be guessed by it.
  const fingerprint = hash('sha256', `${algorithm} ${load}`);
  return { kid: undefined, algorithms: [algorithm], material, fingerprint };
}

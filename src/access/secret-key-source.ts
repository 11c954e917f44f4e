import { createSecretKey, hash, type KeyObject } from 'node:crypto';
import {
  KeyListeners,
  type KeyLookup,
  KeySet,
  type KeySource,
  type KeySourceStatus,
  type Keys,
  type TokenHeader,
  type VerificationKey,
} from './key-source.ts';

interface SecretKeySourceOptions {
  /** `auth.keys.secret`; its UTF-8 octets are the key. */
  readonly secret: string;
  /** HS256, HS384, HS512. */
  readonly algorithms: readonly string[];
}

/** Octets of hash output, which is the shortest key that RFC 7518 section 3.2 allows. */
const hashLengths = new Map([
  ['HS256', 32],
  ['HS384', 48],
  ['HS512', 64],
]);

const secretAlgorithms: readonly string[] = [...hashLengths.keys()];

/** The problems of a secret. No text contains a part of it. */
function validateSecret({ secret, algorithms }: SecretKeySourceOptions): readonly string[] {
  // A public key is known to everybody, so it must not be the secret of an HMAC.
  if (secret.includes('-----BEGIN ')) return ['is PEM, not a secret; name public keys in auth.keys.files'];
  const length = Buffer.byteLength(secret);
  return algorithms.flatMap((algorithm) => {
    const least = hashLengths.get(algorithm);
    if (least === undefined)
      return [`cannot verify ${algorithm}; a secret is for ${secretAlgorithms.join(', ')}`];
    return length < least ? [`is ${length} bytes long; ${algorithm} needs ${least} or more`] : [];
  });
}

/** One shared secret for HMAC. */
export class SecretKeySource implements KeySource {
  readonly #algorithms: readonly string[];
  readonly #listeners = new KeyListeners();
  readonly onChange = this.#listeners.onChange;
  #loads = 0;
  #set: KeySet;

  /** @throws TypeError where `validateSecret` finds a problem. */
  constructor({ secret, algorithms }: SecretKeySourceOptions) {
    this.#algorithms = algorithms;
    this.#set = this.#load(secret);
  }

  /** Replaces the secret: tokens signed with the old one are invalid from now on. Throws like the constructor. */
  replace(secret: string): void {
    this.#set = this.#load(secret);
    this.#listeners.emit();
  }

  keysFor(header: TokenHeader): KeyLookup {
    return { keys: this.#set.find(header) };
  }

  renew(): KeyLookup {
    return { keys: [] };
  }

  current(): Keys {
    return this.#set.keys;
  }

  status(): KeySourceStatus {
    const never = { unusableKeys: 0, failures: 0, lastSuccessMs: undefined, lastError: undefined };
    return { kind: 'secret', keys: 1, loads: this.#loads, ...never };
  }

  #load(secret: string): KeySet {
    const problem = validateSecret({ secret, algorithms: this.#algorithms })[0];
    if (problem !== undefined) throw new TypeError(`auth.keys.secret ${problem}`);
    const material = createSecretKey(secret, 'utf8');
    this.#loads++;
    return new KeySet(this.#algorithms.map((algorithm) => hmacKey(material, algorithm, this.#loads)));
  }
}

/** One imported key per algorithm: a `KeyObject` would be imported again for each token. */
function hmacKey(secret: KeyObject, algorithm: string, load: number): VerificationKey {
  const imported = { name: 'HMAC', hash: `SHA-${algorithm.slice(2)}` };
  const material = secret.toCryptoKey(imported, false, ['verify']);
  // Made of no octet of the secret, which could be guessed from it.
  const fingerprint = hash('sha256', `${algorithm} ${load}`);
  return { kid: undefined, algorithms: [algorithm], material, fingerprint };
}

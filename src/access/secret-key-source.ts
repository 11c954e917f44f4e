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

/** Octets of hash output: the least length of a key (RFC 7518 section 3.2). */
const hashLengths = new Map([
  ['HS256', 32],
  ['HS384', 48],
  ['HS512', 64],
]);

const secretAlgorithms: readonly string[] = [...hashLengths.keys()];

/** What is wrong with a secret, one text each; never a part of it. Exported for its tests. */
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

  /** Another secret in its place: tokens of the old one are invalid from now on. Throws as the constructor does. */
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

  async start(): Promise<void> {}

  close(): void {}

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

/** One key per algorithm, imported once: a `KeyObject` would be imported anew for each token. */
function hmacKey(secret: KeyObject, algorithm: string, load: number): VerificationKey {
  const imported = { name: 'HMAC', hash: `SHA-${algorithm.slice(2)}` };
  const material = secret.toCryptoKey(imported, false, ['verify']);
  // Of no octet of the secret, which could be guessed by it.
  const fingerprint = hash('sha256', `${algorithm} ${load}`);
  return { kid: undefined, algorithms: [algorithm], material, fingerprint };
}

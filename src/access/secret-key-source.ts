import { createSecretKey, hash, type KeyObject } from 'node:crypto';
import { KeptKeys, type KeySourceStatus, type VerificationKey } from './key-source.ts';

interface SecretKeySourceOptions {
  /** `auth.keys.secret`; its UTF-8 octets are the key. The configuration ensures its length. */
  readonly secret: string;
  readonly algorithms: readonly string[];
}

export class SecretKeySource extends KeptKeys {
  readonly #algorithms: readonly string[];
  #secret = '';
  #loads = 0;

  constructor({ secret, algorithms }: SecretKeySourceOptions) {
    super();
    this.#algorithms = algorithms;
    this.use(secret);
  }

  /** From now on tokens that were signed with another secret are invalid. */
  use(secret: string): void {
    if (secret === this.#secret) return;
    this.#secret = secret;
    this.#loads++;
    const material = createSecretKey(secret, 'utf8');
    this.replace(this.#algorithms.map((algorithm) => hmacKey(material, algorithm, this.#loads)));
  }

  status(): KeySourceStatus {
    const never = { unusableKeys: 0, failures: 0, lastSuccessMs: undefined, lastError: undefined };
    return { kind: 'secret', keys: 1, loads: this.#loads, ...never };
  }
}

/** One imported key per algorithm, since a `KeyObject` would be imported again for each token. */
function hmacKey(secret: KeyObject, algorithm: string, load: number): VerificationKey {
  const imported = { name: 'HMAC', hash: `SHA-${algorithm.slice(2)}` };
  const material = secret.toCryptoKey(imported, false, ['verify']);
  // Not derived from the secret: a short secret could be guessed from its digest.
  const fingerprint = hash('sha256', `${algorithm} ${load}`);
  return { kid: undefined, algorithms: [algorithm], material, fingerprint };
}

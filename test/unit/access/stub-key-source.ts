import { createSecretKey } from 'node:crypto';
import { validateJwk } from '../../../src/access/key-document.ts';
import {
  type KeyLookup,
  type Keys,
  KeptKeys,
  type TokenHeader,
  type VerificationKey,
} from '../../../src/access/key-source.ts';
import { publicJwk, type Signer } from './signing.ts';

/** A key source in memory; `asked` counts the calls of `keysFor`. */
export class StubKeySource extends KeptKeys {
  asked = 0;

  constructor(keys: Keys) {
    super('files');
    this.loaded(keys);
  }

  override keysFor(header: TokenHeader, tried?: Keys): KeyLookup {
    this.asked++;
    return { keys: this.find(header, tried) };
  }
}

export function verificationKey(
  signer: Signer,
  algorithms: readonly string[] = [signer.alg],
): VerificationKey {
  const verdict = validateJwk(publicJwk(signer), algorithms);
  if (!('key' in verdict)) throw new Error(JSON.stringify(verdict));
  return verdict.key;
}

export function hmacKey(secret: string): VerificationKey {
  const material = createSecretKey(secret, 'utf8');
  return { kid: undefined, algorithms: ['HS256'], material, fingerprint: 'secret' };
}

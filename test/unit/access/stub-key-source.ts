import { createSecretKey } from 'node:crypto';
import { validateJwk } from '../../../src/access/key-document.ts';
import {
  type KeyLookup,
  KeySet,
  type KeySource,
  type VerificationKey,
} from '../../../src/access/key-source.ts';
import { publicJwk, type Signer } from './signing.ts';

/** A key source in memory. A test changes its keys with `use`; `asked` counts the calls of `keysFor`. */
export interface StubKeySource extends KeySource {
  use(keys: readonly VerificationKey[]): void;
  asked: number;
}

export function createStubKeySource(keys: readonly VerificationKey[]): StubKeySource {
  const listeners = new Set<() => void>();
  let set = new KeySet(keys);
  return {
    asked: 0,
    keysFor(header, tried): KeyLookup {
      this.asked++;
      return { keys: set.find(header, tried) };
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    use(next) {
      set = new KeySet(next);
      for (const listener of listeners) listener();
    },
    current: () => set.keys,
    status: () => ({
      kind: 'files',
      keys: set.keys.length,
      unusableKeys: 0,
      loads: 0,
      failures: 0,
      lastSuccessMs: undefined,
      lastError: undefined,
    }),
    start: async () => {},
    close: () => {},
  };
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

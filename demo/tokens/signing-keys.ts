import type { JWK } from 'jose';
import { calculateJwkThumbprint, exportJWK, exportSPKI, generateKeyPair } from 'jose';

export type SigningKey = {
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
  readonly publicPem: string;
};

export type SigningKeys = {
  /** The key that signs new tokens. */
  current(): SigningKey;
  /** Public keys, newest first. */
  jwks(): { keys: JWK[] };
  /** Signs with a new key from now on; `keepOld: false` withdraws the old ones from the key set. */
  rotate(options?: { keepOld?: boolean }): Promise<void>;
};

export async function createSigningKeys(): Promise<SigningKeys> {
  let keys: [SigningKey, ...SigningKey[]] = [await generateSigningKey()];
  return {
    current: () => keys[0],
    jwks: () => ({ keys: keys.map((key) => key.jwk) }),
    rotate: async ({ keepOld = true } = {}) => {
      const created = await generateSigningKey();
      keys = keepOld ? [created, ...keys] : [created];
    },
  };
}

async function generateSigningKey(): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  return {
    privateKey,
    jwk: { ...jwk, kid, use: 'sig', alg: 'RS256' },
    publicPem: await exportSPKI(publicKey),
  };
}

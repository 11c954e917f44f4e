import { createHash, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { encode, publicJwk, type Signer, signSegments } from './signing.ts';

/** The claim `cnf` that binds a token to the key of this signer. */
export const jktOf = async (signer: Signer) => ({ jkt: await calculateJwkThumbprint(publicJwk(signer)) });

export interface ProofParts {
  readonly claims?: object;
  readonly header?: object;
}

/** A valid proof for `GET http://shop.example/bound`. `claims` and `header` overwrite members; `undefined` removes one. */
export function makeProof(signer: Signer, token: string, { claims, header }: ProofParts = {}): string {
  const jwk = publicJwk(signer);
  const ath = createHash('sha256').update(token).digest('base64url');
  const iat = Math.floor(Date.now() / 1000);
  const htu = 'http://shop.example/bound';
  return signSegments(
    signer,
    encode({ typ: 'dpop+jwt', alg: signer.alg, jwk, ...header }),
    encode({ jti: randomUUID(), htm: 'GET', htu, iat, ath, ...claims }),
  );
}

export const withProof = (token: string, proof: string) => [`Authorization: DPoP ${token}`, `DPoP: ${proof}`];

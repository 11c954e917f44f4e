import { createHmac } from 'node:crypto';

/** Nonces of DPoP proofs (RFC 9449 sections 8 and 9). Replicas with the same secret accept each other's nonces; nonces are not stored. */
export interface ProofNonces {
  /** The nonce for the client's next proof. */
  current(): string;
  accepts(nonce: unknown): boolean;
}

/** How long a nonce is given out; it is accepted for as long again. */
const windowMs = 300_000;

/** `now`: milliseconds since the epoch. A nonce is a keyed digest of its time, so a client cannot compute the next one. */
export function createProofNonces(secret: string, clockToleranceMs: number, now: () => number): ProofNonces {
  const nonceAt = (ms: number) =>
    createHmac('sha256', secret)
      .update(`dpop-nonce ${Math.floor(ms / windowMs)}`)
      .digest('base64url');
  return {
    current: () => nonceAt(now()),
    // The clock of the replica that issued the nonce may be ahead.
    accepts: (nonce) => [0, -windowMs, clockToleranceMs].some((ms) => nonceAt(now() + ms) === nonce),
  };
}

import { createHmac } from 'node:crypto';

/** Nonces of DPoP proofs (RFC 9449 sections 8 and 9). Replicas with one secret accept each other's, and keep none of them. */
export interface ProofNonces {
  /** For a proof that is still to be made. */
  current(): string;
  accepts(nonce: unknown): boolean;
}

/** How long a nonce is given out; it is accepted for as long again. */
const windowMs = 300_000;

/** `now`: milliseconds since the epoch. A nonce is a digest of its time, so a client cannot make the next one. */
export function createProofNonces(secret: string, clockToleranceMs: number, now: () => number): ProofNonces {
  const nonceAt = (ms: number) =>
    createHmac('sha256', secret)
      .update(`dpop-nonce ${Math.floor(ms / windowMs)}`)
      .digest('base64url');
  return {
    current: () => nonceAt(now()),
    // The clock of the replica that gave it may be ahead.
    accepts: (nonce) => [0, -windowMs, clockToleranceMs].some((ms) => nonceAt(now() + ms) === nonce),
  };
}

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { VerifiedToken } from './token-claims.ts';

/** SHA-256 of a whole token: header, payload and signature. */
export type TokenDigest = string & { readonly __brand: 'TokenDigest' };

/** Never a prefix or a decoded claim: those are the same in a forged copy of a remembered token. */
export function digestToken(token: string): TokenDigest {
  return hash('sha256', token, 'base64url') as TokenDigest;
}

/**
 * The memory of tokens that were verified: bounded, least recently used go first, the tokens themselves are not held.
 * It knows no time; whoever takes an entry asks `validateTimes` first. Refusals are never put in, so that nobody can
 * push good tokens out with bad ones.
 */
export interface VerifiedTokens {
  get(digest: TokenDigest): VerifiedToken | undefined;
  set(digest: TokenDigest, verified: VerifiedToken): void;
  clear(): void;
  readonly size: number;
}

/** @param maxTokens Entries, about 0.5 KiB each; 0 remembers nothing. */
export function createVerifiedTokens(maxTokens: number): VerifiedTokens {
  if (maxTokens === 0) return forgetful;
  const cache = new LRUCache<TokenDigest, VerifiedToken>({ max: maxTokens });
  return {
    get: (digest) => cache.get(digest),
    set: (digest, verified) => void cache.set(digest, verified),
    clear: () => cache.clear(),
    get size() {
      return cache.size;
    },
  };
}

const forgetful: VerifiedTokens = { get: () => undefined, set: () => {}, clear: () => {}, size: 0 };

import { decodeJwt } from 'jose/jwt/decode';
import type { RetryQueue } from './retry-queue.ts';
import type { Digests } from './token-digest.ts';
import type { TokenStore } from './token-store.ts';

export interface RefreshTokensOptions {
  readonly store: TokenStore;
  /** Whose an access token of the shop's own answer is; see `createAccessTokenSubject`. */
  readonly subjectOf: (accessToken: string) => string | undefined;
  /** Milliseconds that a refresh token lives when the shop's answer names no lifetime. */
  readonly lifetimeMs: number;
  /** Milliseconds in which the shop must have answered a refresh; its claim holds `marginMs` longer. */
  readonly answerWithinMs: number;
  /** Milliseconds from the confirmed claim to the first byte of the forwarded refresh. Default 5000. */
  readonly marginMs?: number;
  /** Milliseconds that a claim holds until it is confirmed: two calls to the store must fit. Default 2000. */
  readonly claimMs?: number;
  /** What happens when a used token is sent again. Default `refuse`. */
  readonly replay?: 'refuse' | 'forward' | 'end-family';
  /** Milliseconds in which a used token gets the answer of its refresh again. Default 0: never. */
  readonly leewayMs?: number;
  /** Key of the digests; see `createDigests`. */
  readonly digestKey?: string | undefined;
  /** Longest answer of the shop, in bytes, that is searched for tokens; a longer one is withheld. Default 262144. */
  readonly answerBytes?: number;
  readonly onEvent?: (event: RefreshTokenEvent) => void;
  /** Monotonic milliseconds. Default `performance.now`. */
  readonly monotonicNow?: () => number;
}

/** What happened to a token, for counters; nothing of the token is in it. */
export const refreshTokenEvents = [
  'exchange-granted',
  'exchange-refused-used',
  'exchange-refused-revoked',
  'exchange-refused-expired',
  'exchange-refused-in-exchange',
  'refused-not-plain', // what two readers could read in two ways
  'exchange-without-token', // nothing to look up: the shop decided
  'exchanged',
  'exchange-freed', // the shop said no, or was not reached
  'exchange-unknown', // nobody knows; the claim lapses
  'exchange-repeated', // the same answer again, within the leeway
  'replay-forwarded',
  'replay-withheld', // the shop would have refreshed a used token
  'family-ended',
  'answer-withheld', // an unknown token turned out to be revoked
  'answer-unreadable', // and withheld: nobody can say which tokens are in it
  'recorded',
  'not-recorded-none', // there is no refresh token in the answer
  'record-delayed', // the store was away: it is recorded when it is back
  'revocation-noted',
  'revocation-foreign',
  'book-full', // too many records about nothing: not noted, the shop decides
  'revocation-undone',
  'store-unavailable', // 503 instead of a refresh or a revocation
  'write-delayed', // tried again until the store takes it
  'write-lost',
] as const;
export type RefreshTokenEvent = (typeof refreshTokenEvents)[number];

/** Shared by the parts of this feature. */
export interface RefreshTokenContext extends Required<Omit<RefreshTokensOptions, 'digestKey' | 'onEvent'>> {
  readonly digests: Digests;
  readonly retries: RetryQueue;
  emit(event: RefreshTokenEvent): void;
}

/**
 * Whose an access token is, for bookkeeping only: it is decoded and NOT verified. It must come from the shop's own
 * answer. `readSubject` is the one that verified tokens are read with, so that both name a user alike.
 */
export function createAccessTokenSubject(
  readSubject: (claims: Readonly<Record<string, unknown>>) => string | undefined,
): (accessToken: string) => string | undefined {
  return (accessToken) => {
    try {
      return readSubject(decodeJwt(accessToken));
    } catch {
      return undefined;
    }
  };
}

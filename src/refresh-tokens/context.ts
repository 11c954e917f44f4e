import { decodeJwt } from 'jose/jwt/decode';
import type { RetryQueue } from './retry-queue.ts';
import type { Digests } from './token-digest.ts';
import type { TokenStore } from './token-store.ts';

export interface RefreshTokensOptions {
  readonly store: TokenStore;
  /** The subject of an access token in the shop's own response; see `createAccessTokenSubject`. */
  readonly subjectOf: (accessToken: string) => string | undefined;
  /** Milliseconds that a refresh token lives when the shop's response names no lifetime. */
  readonly lifetimeMs: number;
  /** Milliseconds in which the shop must have answered a refresh; its claim lasts `marginMs` longer. */
  readonly answerWithinMs: number;
  /** Milliseconds from the start of a claim in which the refresh has to be sent to the shop. Default 5000. */
  readonly marginMs?: number;
  /** Milliseconds for which the shop may work on a refresh whose connection was cut. Default 10000. */
  readonly shopTimeoutMs?: number;
  /** How a used token is answered (`answerReplay`). Default: `refuse`; `forward` at OAuth endpoints. */
  readonly replay?: 'refuse' | 'forward' | 'end-family' | undefined;
  /** Milliseconds for which a used token gets the response of its refresh again. Default 0: never. */
  readonly leewayMs?: number;
  /** Key of the digests; see `createDigests`. */
  readonly digestKey?: string | undefined;
  /** Bytes of the shop's response that are searched for tokens; a longer one is withheld. Default 262144. */
  readonly answerBytes?: number;
  readonly onEvent?: (event: RefreshTokenEvent) => void;
  /** Monotonic milliseconds. Default `performance.now`. */
  readonly monotonicNow?: () => number;
}

/** What happened to a token: names of counters. */
type RefreshTokenEvent =
  | 'exchange-granted'
  | 'exchange-refused-used'
  | 'exchange-refused-revoked'
  | 'exchange-refused-expired'
  | 'exchange-refused-in-exchange'
  | 'refused-not-plain' // two parsers could read the request in two ways
  | 'exchange-without-token' // nothing to check: the shop decides
  | 'exchanged'
  | 'exchange-renewed' // the shop gave no other refresh token: this one stays valid
  | 'exchange-freed' // the shop refused it, or was not reached
  | 'exchange-unknown' // no complete response: the claim stays until it lapses
  | 'exchange-repeated' // the same response again, within the leeway
  | 'replay-forwarded'
  | 'replay-withheld' // the shop has refreshed a used token
  | 'family-ended'
  | 'answer-withheld' // the response showed that the token belongs to a user who has revoked it
  | 'answer-unreadable' // withheld: it may contain tokens that cannot be read
  | 'recorded'
  | 'not-recorded-none' // the response has no refresh token
  | 'record-delayed' // the store is away: recorded when it is back
  | 'revocation-noted'
  | 'revocation-foreign' // the token is another user's: the shop decides
  | 'revocation-not-noted' // too many notes about unknown tokens: the shop decides
  | 'revocation-undone'
  | 'store-unavailable' // 503 instead of a refresh or a revocation
  | 'write-delayed' // the store is away: tried again until it takes it
  | 'write-lost'; // too many writes waited already

/** What the parts of this feature share. */
export interface RefreshTokenContext extends Required<Omit<RefreshTokensOptions, 'digestKey' | 'onEvent'>> {
  readonly digests: Digests;
  readonly retries: RetryQueue;
  emit(event: RefreshTokenEvent): void;
}

/**
 * Reads the subject of an access token, which is decoded and NOT verified: for tokens in the shop's own response only.
 * `readSubject` is also applied to verified tokens, so that both give a user the same name.
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

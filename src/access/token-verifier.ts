import { hash } from 'node:crypto';
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { LRUCache } from 'lru-cache';
import { type Rejection, reject } from '../http/rejection.ts';
import type { Eventually } from '../lib/eventually.ts';
import { parseJsonObject } from '../lib/json.ts';
import { readTokenPart } from './bearer-credentials.ts';
import {
  type ClaimPath,
  type Claims,
  createScopesReader,
  createSubjectReader,
  defaultScopePaths,
} from './claim-paths.ts';
import type { KeySource, Keys, TokenHeader } from './key-source.ts';
import {
  type ClaimRules,
  type TokenIdentity,
  type TokenRefusal,
  type VerifiedToken,
  validateClaims,
  validateTimes,
} from './token-claims.ts';
import { createKindCheck, type ProofMode, type TokenType } from './token-kind.ts';

export interface TokenVerifierOptions extends Omit<ClaimRules, 'refuseKind' | 'readSubject' | 'readScopes'> {
  /** Accepted `alg` values; never `none`. */
  readonly algorithms: readonly string[];
  readonly keySource: KeySource;
  /** How a token must say that it is an access token. Unset: it need not say so (`createKindCheck`). */
  readonly tokenType?: TokenType | undefined;
  /** Which proof of possession is checked: tokens bound to another kind of key are refused. Default: none. */
  readonly proof?: ProofMode | undefined;
  readonly subject: string | readonly ClaimPath[];
  readonly scopes?: readonly ClaimPath[];
  /** Default 10 000; 0: no token is remembered. */
  readonly maxRememberedTokens?: number;
  /**
   * Tokens that may be verified at once; more are refused as `overloaded`, so that a flood of bad tokens leaves room
   * for remembered ones. Default 1000: half of `limits.inFlight`.
   */
  readonly maxVerifying?: number;
  readonly now: () => number;
  /** Called with the user after each verification, not for a remembered token. */
  readonly onVerified?: (identity: TokenIdentity) => void;
}

export type TokenVerdict = TokenIdentity | Rejection;

/** SHA-256 of the whole token: a forged copy of a remembered token would share its prefix and its claims. */
type TokenDigest = string;

/**
 * Verifies tokens in canonical compact form: signature first, then claims. Good tokens are remembered by their digest, so
 * the tokens themselves are not stored. Refusals are not remembered, so bad tokens cannot displace good ones.
 */
export class TokenVerifier {
  readonly #options: TokenVerifierOptions;
  readonly #rules: ClaimRules;
  readonly #maxVerifying: number;
  /** The least recently used one is dropped first; undefined: nothing is remembered. */
  readonly #remembered: LRUCache<TokenDigest, VerifiedToken> | undefined;
  /** Verifications in progress: concurrent requests with the same token share one. */
  readonly #underWay = new Map<TokenDigest, Promise<TokenVerdict>>();
  readonly #stopListening: () => void;
  #verifying = 0;
  /** Counts changes of the keys: the result of a verification that began before the last one is not remembered. */
  #generation = 0;

  /** @throws TypeError if an algorithm is `none`, or the subject or a scope is not a path. */
  constructor(options: TokenVerifierOptions) {
    const { algorithms, keySource, maxRememberedTokens = 10_000, maxVerifying = 1_000 } = options;
    if (algorithms.includes('none')) throw new TypeError('The algorithm none verifies nothing.');
    this.#options = options;
    this.#rules = compileClaimRules(options);
    this.#maxVerifying = maxVerifying;
    if (maxRememberedTokens > 0) this.#remembered = new LRUCache({ max: maxRememberedTokens });
    this.#stopListening = keySource.onChange(() => this.forgetAll());
  }

  /**
   * Returns a value at once for a remembered token, a bad header or an overload; else a promise, which rejects only for a
   * bug in shopward.
   */
  verify(token: string): Eventually<TokenVerdict> {
    const digest = hash('sha256', token, 'base64url');
    const known = this.#remembered?.get(digest);
    if (known !== undefined) {
      const refusal = validateTimes(known, this.#rules, this.#options.now());
      return refusal === undefined ? known.identity : refuseToken(refusal);
    }
    const shared = this.#underWay.get(digest);
    if (shared !== undefined) return shared;
    const header = readTokenHeader(token, this.#options.algorithms);
    if (typeof header === 'string') return refuseToken(header);
    if (this.#verifying >= this.#maxVerifying)
      return reject('overloaded', { reason: 'verifications', retryAfterSeconds: 1 });
    this.#verifying++;
    const verification = this.#verifyNew(token, digest, header).finally(() => {
      this.#verifying--;
      if (this.#underWay.get(digest) === verification) this.#underWay.delete(digest);
    });
    this.#underWay.set(digest, verification);
    return verification;
  }

  /** Forgets every remembered token; also called whenever the keys change. */
  forgetAll(): void {
    this.#generation++;
    this.#remembered?.clear();
    this.#underWay.clear();
  }

  status(): { readonly remembered: number; readonly verifying: number } {
    return { remembered: this.#remembered?.size ?? 0, verifying: this.#verifying };
  }

  /** Stops listening to the key source, which its owner closes. */
  close(): void {
    this.#stopListening();
    this.forgetAll();
  }

  async #verifyNew(token: string, digest: TokenDigest, header: CheckedHeader): Promise<TokenVerdict> {
    const startedIn = this.#generation;
    const { keySource, now, onVerified } = this.#options;
    const payload = await verifySignature(token, header, keySource);
    if (!(payload instanceof Uint8Array)) return payload;
    const claims = parseJsonObject(payload);
    if (claims === undefined) return refuseToken('malformed');
    const verified = validateClaims(claims, this.#rules, now(), header.parameters);
    if (typeof verified === 'string') return refuseToken(verified);
    if (startedIn === this.#generation) this.#remembered?.set(digest, verified);
    onVerified?.(verified.identity);
    return verified.identity;
  }
}

/** @throws TypeError if the subject or a scope is not a path. */
export function compileClaimRules(
  options: Omit<TokenVerifierOptions, 'algorithms' | 'keySource' | 'now'>,
): ClaimRules {
  return {
    ...options,
    refuseKind: createKindCheck(options.tokenType, options.proof),
    readSubject: createSubjectReader(options.subject),
    readScopes: createScopesReader(options.scopes ?? defaultScopePaths),
  };
}

interface CheckedHeader extends TokenHeader {
  readonly parameters: Claims;
}

/** Reads and checks the header of a compact token before any cryptography (RFC 7515 section 4.1). */
function readTokenHeader(token: string, algorithms: readonly string[]): CheckedHeader | TokenRefusal {
  const header = readTokenPart(token, 0);
  if (header === undefined) return 'malformed';
  const { alg, kid } = header;
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm';
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return 'critical';
  if (kid !== undefined && typeof kid !== 'string') return 'malformed';
  return { alg, kid, parameters: header };
}

async function verifySignature(
  token: string,
  header: TokenHeader,
  source: KeySource,
): Promise<Uint8Array | Rejection> {
  const found = await source.keysFor(header);
  if ('retryAfterSeconds' in found) return reject('keys-unavailable', { ...found, reason: 'keys' });
  const { keys } = found;
  const payload = await verifyWithAny(token, header, keys);
  if (payload !== undefined) return payload;
  // A token with a known `kid` can be checked only with that key. Any other may be signed with a newer key.
  const isKeyNamed = keys.some((key) => key.kid !== undefined && key.kid === header.kid);
  if (isKeyNamed || keys.length === 0) return refuseToken(keys.length === 0 ? 'unknown-key' : 'signature');
  const newer = await source.keysFor(header, keys);
  if ('retryAfterSeconds' in newer) return reject('keys-unavailable', { ...newer, reason: 'keys' });
  return (await verifyWithAny(token, header, newer.keys)) ?? refuseToken('signature');
}

async function verifyWithAny(
  token: string,
  { alg }: TokenHeader,
  keys: Keys,
): Promise<Uint8Array | undefined> {
  for (const key of keys) {
    try {
      return (await compactVerify(token, key.material, { algorithms: [alg] })).payload;
    } catch (error) {
      // An error of the library is a verdict on the token; any other error is a bug in shopward.
      if (!(error instanceof JOSEError)) throw error;
    }
  }
  return undefined;
}

export function refuseToken(reason: TokenRefusal): Rejection {
  return reject('access-token-invalid', { reason });
}

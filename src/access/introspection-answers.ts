import { isObject } from '../lib/json.ts';
import type { ProviderError } from './provider-fetch.ts';
import {
  type ClaimRules,
  type TokenIdentity,
  type TokenRefusal,
  type VerifiedToken,
  validateClaims,
  validateTimes,
} from './token-claims.ts';
import { readConfirmation } from './token-kind.ts';
import { compileClaimRules, type TokenVerifierOptions } from './token-verifier.ts';

/** Which claims of an answer count. */
export interface AnswerOptions
  extends Pick<
    TokenVerifierOptions,
    | 'name'
    | 'audience'
    | 'clockToleranceMs'
    | 'maxTokenAgeMs'
    | 'subject'
    | 'scopes'
    | 'tokenType'
    | 'proof'
    | 'now'
  > {
  /** `iss` of an answer, if it has one; unset: not checked. */
  readonly issuer?: string | undefined;
  /** Whether an answer without `token_type` counts as one for no access token. */
  readonly requireTokenType: boolean;
  /** Milliseconds for which an active token is remembered, at most until its `exp`; 0: each request asks. */
  readonly ttlMs: number;
}

export type Verdict = { readonly verified: VerifiedToken } | { readonly refusal: TokenRefusal };

/** Milliseconds after which a WebSocket ends if the answer does not say when its token expires. */
const leastLifetimeMs = 60_000;

/** What the answers of an introspection endpoint (RFC 7662 section 2.2) mean. */
export class IntrospectionAnswers {
  readonly #options: AnswerOptions;
  readonly #rules: ClaimRules;
  /** For an answer without `iat`: the issuer has just confirmed the token, whenever it was made. */
  readonly #agelessRules: ClaimRules;

  /** @throws TypeError if the subject or a scope is not a path. */
  constructor(options: AnswerOptions) {
    this.#options = options;
    this.#rules = compileClaimRules(options);
    this.#agelessRules = { ...this.#rules, maxTokenAgeMs: undefined };
  }

  /** The verdict of an answer; anything but a plain yes or no is an error. */
  read(answer: unknown): Verdict | { readonly error: ProviderError } {
    if (!isObject(answer) || typeof answer.active !== 'boolean') return { error: 'malformed' };
    if (!answer.active) return { refusal: 'inactive' };
    const { requireTokenType, ttlMs, issuer, now } = this.#options;
    // RFC 9449 section 6.2. Without its key the scheme DPoP is refused, and no other is accepted for such a token.
    const isBound = readConfirmation(answer.cnf)?.by === 'dpop';
    if (!isNamedAccess(answer.token_type, requireTokenType, isBound)) return { refusal: 'other-kind' };
    // RFC 7662 section 2.2 makes them optional, and the issuer that was asked has just confirmed the token.
    const exp = answer.exp ?? (now() + Math.max(ttlMs, leastLifetimeMs)) / 1000;
    const iss = answer.iss ?? issuer;
    const rules = answer.iat === undefined ? this.#agelessRules : this.#rules;
    const verified = validateClaims({ ...answer, exp, iss }, rules, now());
    return typeof verified === 'string' ? { refusal: verified } : { verified };
  }

  /** The user whom an earlier verdict names, or why its token is refused by now. */
  conclude(verdict: Verdict): TokenIdentity | TokenRefusal {
    if ('refusal' in verdict) return verdict.refusal;
    const rules = verdict.verified.issuedAtMs === undefined ? this.#agelessRules : this.#rules;
    return validateTimes(verdict.verified, rules, this.#options.now()) ?? verdict.verified.identity;
  }
}

/** A refresh token is active too, and many issuers give it no type. */
function isNamedAccess(type: unknown, isRequired: boolean, isBound: boolean): boolean {
  if (typeof type !== 'string') return type === undefined && !isRequired;
  return /^(bearer|access_token)$/i.test(type) || (isBound && /^dpop$/i.test(type));
}

import { isObject } from '../lib/json.ts';
import type { ProviderError } from './provider-fetch.ts';
import {
  type ClaimRules,
  type TokenRefusal,
  type VerifiedToken,
  validateClaims,
  validateTimes,
} from './token-claims.ts';
import { readConfirmation } from './token-kind.ts';
import {
  compileClaimRules,
  refuseToken,
  type TokenVerdict,
  type TokenVerifierOptions,
} from './token-verifier.ts';

export interface AnswerOptions extends Omit<TokenVerifierOptions, 'algorithms' | 'keySource' | 'issuer'> {
  /** If an answer has `iss`, it must equal this. Unset: not checked. */
  readonly issuer?: string | undefined;
  /** Whether a token is refused if the answer has no `token_type`. */
  readonly requireTokenType: boolean;
  /** Milliseconds for which an active token is remembered, at most until its `exp`; 0: the endpoint is asked for each request. */
  readonly ttlMs: number;
}

export type Verdict = { readonly verified: VerifiedToken } | { readonly refusal: TokenRefusal };

/** If an answer has no `exp`, the token counts as valid for at least this many milliseconds. Its WebSockets end after that. */
const leastLifetimeMs = 60_000;

/** @throws TypeError if the subject or a scope is not a path. */
export function createAnswerReader(options: AnswerOptions) {
  const { requireTokenType, ttlMs, issuer, now } = options;
  const agedRules = compileClaimRules(options);
  // Without `iat` the age is not checked: the issuer has just confirmed the token.
  const agelessRules: ClaimRules = { ...agedRules, maxTokenAgeMs: undefined };
  return {
    /** The verdict of an answer; an answer without a boolean `active` is an error. */
    read(answer: unknown): Verdict | { readonly error: ProviderError } {
      if (!isObject(answer) || typeof answer.active !== 'boolean') return { error: 'malformed' };
      if (!answer.active) return { refusal: 'inactive' };
      // RFC 9449 section 6.2: `token_type` DPoP counts only for a token that is bound to a key.
      const isBound = readConfirmation(answer.cnf)?.by === 'dpop';
      if (!isNamedAccess(answer.token_type, requireTokenType, isBound)) return { refusal: 'other-kind' };
      // RFC 7662 section 2.2: `exp` and `iss` are optional. The issuer has just confirmed the token.
      const exp = answer.exp ?? (now() + Math.max(ttlMs, leastLifetimeMs)) / 1000;
      const iss = answer.iss ?? issuer;
      const rules = answer.iat === undefined ? agelessRules : agedRules;
      const verified = validateClaims({ ...answer, exp, iss }, rules, now());
      return typeof verified === 'string' ? { refusal: verified } : { verified };
    },

    /** Checks a remembered verdict again. */
    conclude(verdict: Verdict): TokenVerdict {
      if ('refusal' in verdict) return refuseToken(verdict.refusal);
      const rules = verdict.verified.issuedAtMs === undefined ? agelessRules : agedRules;
      const refusal = validateTimes(verdict.verified, rules, now());
      return refusal === undefined ? verdict.verified.identity : refuseToken(refusal);
    },
  };
}

/** Whether `token_type` is that of an access token. A refresh token is active too, and many issuers give it no type. */
function isNamedAccess(type: unknown, isRequired: boolean, isBound: boolean): boolean {
  if (typeof type !== 'string') return type === undefined && !isRequired;
  return /^(bearer|access_token)$/i.test(type) || (isBound && /^dpop$/i.test(type));
}

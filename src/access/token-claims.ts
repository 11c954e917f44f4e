import type { Identity } from '../proxy/filter.ts';
import type { Claims, ScopesReader, SubjectReader } from './claim-paths.ts';
import { type Confirmation, type KindCheck, type KindRefusal, readConfirmation } from './token-kind.ts';

/**
 * Why a token was refused, for log, metrics and console: docs/reasons.md explains each. All of these give the client the
 * same answer, so that it does not help to forge a token.
 */
export type TokenRefusal =
  | 'malformed'
  | 'algorithm'
  | 'critical'
  | 'unknown-key'
  | 'signature'
  | 'claims'
  | 'no-expiry'
  | 'expired'
  | 'not-before'
  | 'issued-in-future'
  | 'no-issue-time'
  | 'too-old'
  | 'issuer'
  | 'audience'
  | 'subject'
  | 'inactive'
  | KindRefusal;

export interface TokenIdentity extends Identity {
  /** The user as the token names it, without the issuer's name. */
  readonly claimedSubject: string;
  /** The key that the token is bound to; undefined: none. */
  readonly confirmation?: Confirmation | undefined;
  /** What the introspection endpoint answered; undefined: the claims are in the token. */
  readonly claims?: Claims | undefined;
}

export interface VerifiedToken {
  readonly identity: TokenIdentity;
  readonly notBeforeMs: number | undefined;
  readonly issuedAtMs: number | undefined;
}

interface TimeRules {
  /** Milliseconds by which the issuer's clock may differ from the clock here, either way. */
  readonly clockToleranceMs: number;
  /** Milliseconds since `iat`; unset: not checked. Where it is set, tokens without `iat` are refused. */
  readonly maxTokenAgeMs?: number | undefined;
}

export interface ClaimRules extends TimeRules {
  /** Name of the issuer; unset: there is only one. */
  readonly name?: string | undefined;
  /** Accepted `iss` values, compared octet for octet; unset: not checked. */
  readonly issuer?: string | readonly string[] | undefined;
  /** Accepted `aud` values, one of which must be among the token's; unset: not checked. */
  readonly audience?: string | readonly string[] | undefined;
  readonly refuseKind: KindCheck;
  readonly readSubject: SubjectReader;
  readonly readScopes: ScopesReader;
}

/**
 * Checks the claims of a token whose signature was good (RFC 7519 section 4.1); `exp` is required. `header`: undefined
 * if the claims are an answer of the introspection endpoint.
 */
export function validateClaims(
  claims: Claims,
  rules: ClaimRules,
  nowMs: number,
  header?: Claims,
): VerifiedToken | TokenRefusal {
  const scopes = rules.readScopes(claims);
  const kind = rules.refuseKind(claims, scopes.length > 0, header);
  if (kind !== undefined) return kind;
  if (claims.exp === undefined) return 'no-expiry';
  if (!isNumericDate(claims.exp)) return 'claims';
  if (!isNumericDateOrAbsent(claims.nbf) || !isNumericDateOrAbsent(claims.iat)) return 'claims';
  const times = { notBeforeMs: milliseconds(claims.nbf), issuedAtMs: milliseconds(claims.iat) };
  const expiresAtMs = claims.exp * 1000;
  const refusal =
    validateTimes({ ...times, identity: { expiresAtMs } }, rules, nowMs) ?? validateParties(claims, rules);
  if (refusal !== undefined) return refusal;
  const claimedSubject = rules.readSubject(claims);
  if (claimedSubject === undefined) return 'subject';
  const issuer = isString(claims.iss) ? claims.iss : undefined;
  // In this order: RFC 9068, OpenID Connect, Okta.
  const clientId = [claims.client_id, claims.azp, claims.cid].find(isString);
  const identity: TokenIdentity = Object.freeze({
    subject: subjectOfIssuer(rules.name, claimedSubject),
    claimedSubject,
    clientId,
    scopes,
    issuer,
    expiresAtMs,
    ...(claims.cnf !== undefined && { confirmation: readConfirmation(claims.cnf) }),
    ...(header === undefined && { claims }),
  });
  return { ...times, identity };
}

/** A name that is unique across issuers: users of two issuers may have the same name. */
export function subjectOfIssuer(name: string | undefined, claimedSubject: string): string {
  return name === undefined ? claimedSubject : `${name} ${claimedSubject}`;
}

type Times = Omit<VerifiedToken, 'identity'> & { readonly identity: Pick<TokenIdentity, 'expiresAtMs'> };

/** Checks the claims that depend on the time; called again for each use of a remembered token. */
export function validateTimes(token: Times, rules: TimeRules, nowMs: number): TokenRefusal | undefined {
  const { clockToleranceMs: tolerance, maxTokenAgeMs } = rules;
  const { notBeforeMs, issuedAtMs } = token;
  if (token.identity.expiresAtMs + tolerance <= nowMs) return 'expired';
  if (notBeforeMs !== undefined && notBeforeMs - tolerance > nowMs) return 'not-before';
  if (issuedAtMs !== undefined && issuedAtMs - tolerance > nowMs) return 'issued-in-future';
  if (maxTokenAgeMs === undefined) return undefined;
  if (issuedAtMs === undefined) return 'no-issue-time';
  return issuedAtMs + maxTokenAgeMs + tolerance <= nowMs ? 'too-old' : undefined;
}

function validateParties(claims: Claims, rules: ClaimRules): TokenRefusal | undefined {
  const { issuer, audience } = rules;
  if (issuer !== undefined && !(isString(claims.iss) && accepts(issuer, claims.iss))) return 'issuer';
  if (audience !== undefined && !audienceNames(claims.aud).some((name) => accepts(audience, name)))
    return 'audience';
  return undefined;
}

function accepts(accepted: string | readonly string[], value: string): boolean {
  return typeof accepted === 'string' ? accepted === value : accepted.includes(value);
}

/** `aud` is one name or an array of names (RFC 7519 section 4.1.3); an array with any other member counts as empty. */
function audienceNames(claim: unknown): readonly string[] {
  if (isString(claim)) return [claim];
  return Array.isArray(claim) && claim.every(isString) ? claim : [];
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

/**
 * Seconds since the epoch, fractions allowed (RFC 7519 section 2), within the range of a `Date`: JSON reads `1e999` as
 * Infinity, and a token with that `exp` would never expire.
 */
function isNumericDate(value: unknown): value is number {
  return typeof value === 'number' && Math.abs(value) <= farthestSeconds;
}

const farthestSeconds = 8.64e12;

function isNumericDateOrAbsent(value: unknown): value is number | undefined {
  return value === undefined || isNumericDate(value);
}

function milliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}

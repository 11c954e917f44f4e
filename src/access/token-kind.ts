import { isObject } from '../lib/json.ts';
import { type ClaimPath, type Claims, namesOf, readClaim } from './claim-paths.ts';

/** `auth.tokenType`: the header parameter or claim that says what a token is, and its values for an access token. */
export interface TokenType {
  readonly header?: string | undefined;
  readonly claim?: ClaimPath | undefined;
  readonly values: readonly string[];
}

/** `auth.proof`: how a client proves that it has the key of its token. */
export type ProofMode = 'none' | 'dpop' | 'mtls' | 'any';

export function acceptsDpop(proof: ProofMode = 'none'): boolean {
  return proof === 'dpop' || proof === 'any';
}

export function acceptsCertificates(proof: ProofMode = 'none'): boolean {
  return proof === 'mtls' || proof === 'any';
}

export interface Confirmation {
  /** `dpop`: a key of the client (RFC 9449 section 6.1). `mtls`: its certificate (RFC 8705 section 3.1). */
  readonly by: 'dpop' | 'mtls';
  /** SHA-256 in base64url. */
  readonly thumbprint: string;
}

/** Reads the claim `cnf`. Undefined unless it has exactly one member, and that is a key whose proof can be checked. */
export function readConfirmation(cnf: unknown): Confirmation | undefined {
  const [[name, thumbprint] = [], ...more] = isObject(cnf) ? Object.entries(cnf) : [];
  if (more.length > 0 || typeof thumbprint !== 'string' || !/^[\w-]{43}$/.test(thumbprint)) return undefined;
  if (name === 'jkt') return { by: 'dpop', thumbprint };
  return name === 'x5t#S256' ? { by: 'mtls', thumbprint } : undefined;
}

/** Whether `auth.proof` makes each request prove possession of the key. */
function isChecked(cnf: unknown, proof: ProofMode): boolean {
  const by = readConfirmation(cnf)?.by;
  return by === 'mtls' ? acceptsCertificates(proof) : by === 'dpop' && acceptsDpop(proof);
}

/**
 * `other-kind`: not an access token. `sender-constrained`: bound to a key of the client (RFC 7800), but `auth.proof` has no
 * check for that key, so anyone could use the token.
 */
export type KindRefusal = 'other-kind' | 'sender-constrained';

/** The header of an access token: RFC 7519 section 5.1, RFC 9068 section 2.1. */
const accessTokenTypes = ['jwt', 'at+jwt'];

/** What issuers write into the claims `typ` and `token_use` of an ID, refresh, offline or logout token. */
const otherKind = /refresh|offline|logout|^id(_?token)?$/i;

/**
 * Returns why a token is refused for its kind; undefined: it is an acceptable access token. `header`: undefined for an
 * answer of the introspection endpoint.
 */
export type KindCheck = (claims: Claims, hasScope: boolean, header?: Claims) => KindRefusal | undefined;

/**
 * Compiles `auth.tokenType`. Without it a token is refused if its header or its claims say that it is another kind
 * (RFC 8725 section 3.11). With it the named value must also be there and be one of `values`.
 */
export function createKindCheck(type?: TokenType, proof: ProofMode = 'none'): KindCheck {
  const claim = type?.claim === undefined ? undefined : namesOf(type.claim);
  const isTypeNamed = type?.header === 'typ';
  const headerTypes = isTypeNamed ? type.values.map((value) => mediaSubtype(value)) : accessTokenTypes;
  return (claims, hasScope, header) => {
    if (isThere(claims.cnf) && !isChecked(claims.cnf, proof)) return 'sender-constrained';
    if (header !== undefined) {
      const { typ } = header;
      if (typ === undefined ? isTypeNamed : !isOneOf(mediaSubtype(typ), headerTypes)) return 'other-kind';
      const named = type?.header;
      if (named !== undefined && !isTypeNamed && !isOneOf(header[named], type?.values ?? []))
        return 'other-kind';
    }
    if (claim !== undefined && !isOneOf(readClaim(claims, claim), type?.values ?? [])) return 'other-kind';
    // RFC 8417 section 2.2: only security event tokens, logout tokens among them, have `events`.
    if (isThere(claims.events)) return 'other-kind';
    // OpenID Connect Core section 2: ID tokens have both; some access tokens have a `nonce` alone.
    if (isThere(claims.nonce) && isThere(claims.at_hash) && !hasScope) return 'other-kind';
    return saysOtherKind(claims.typ) || saysOtherKind(claims.token_use) ? 'other-kind' : undefined;
  };
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function saysOtherKind(value: unknown): boolean {
  return isThere(value) && (typeof value !== 'string' || otherKind.test(value));
}

function isOneOf(value: unknown, accepted: readonly (string | undefined)[]): boolean {
  return typeof value === 'string' && accepted.includes(value);
}

/** RFC 7515 section 4.1.9: case does not count, and `application/` may be left out. */
function mediaSubtype(type: unknown): string | undefined {
  return typeof type === 'string' ? type.toLowerCase().replace(/^application\//, '') : undefined;
}

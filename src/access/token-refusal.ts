import { type Rejection, reject } from '../http/rejection.ts';

/**
 * Why a token was refused: for log, metrics and console only. On the wire all of these are one and the same answer, so
 * that nobody can feel his way to a valid token.
 */
export type TokenRefusal =
  /** Not a JWS, or a header or payload that is no JSON object. */
  | 'malformed'
  /** `alg` is not one of the configured ones. */
  | 'algorithm'
  /** `crit` or `b64`: extensions that we do not speak (RFC 7515 section 4.1.11, RFC 7797). */
  | 'critical'
  /** No key has this `kid`, or none fits `alg`. */
  | 'unknown-key'
  | 'signature'
  /** A registered claim of the wrong type. */
  | 'claims'
  | 'no-expiry'
  | 'expired'
  | 'not-before'
  | 'issued-in-future'
  /** No `iat`, while `auth.maxTokenAge` is set. */
  | 'no-issue-time'
  /** Older than `auth.maxTokenAge`. */
  | 'too-old'
  | 'issuer'
  | 'audience'
  /** The claim of `auth.subject` names nobody. */
  | 'subject';

export function refuseToken(reason: TokenRefusal): Rejection {
  return reject('access-token-invalid', { reason });
}

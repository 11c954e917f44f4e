import type { CanonicalRequest } from '../http/canonical-request.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { type BearerCredentials, readBearerCredentials } from './bearer-credentials.ts';
import { createWithIdentity, type IdentityForwarding } from './identity-fields.ts';
import type { Requirement } from './protected-list.ts';
import { type Asked, missingScopes, refuseClaims } from './requirement-check.ts';
import type { TokenIdentity } from './token-claims.ts';
import type { AccessTokenVerifier } from './token-issuers.ts';
import { findShopCredentials, readPresentedToken } from './token-places.ts';

/** The parts of a request that a challenge depends on. */
type ChallengedRequest = Pick<CanonicalRequest, 'scheme' | 'host'>;

interface AuthenticatorOptions {
  readonly verifier: AccessTokenVerifier;
  /** Whether a token may have any form. Default: only that of a JSON Web Token. */
  readonly takesOpaque?: boolean;
  /** Address of the metadata of RFC 9728, for challenges; undefined: challenges do not contain it. */
  readonly resourceMetadataUrl?: (request: ChallengedRequest) => string;
  /** Origins whose pages may make changes with a token in a cookie, besides those of the request's own host. Default: none. */
  readonly cookieOrigins?: readonly string[];
  /** Cookies that count as credentials where a row says `credentials: shop`. Default: none. */
  readonly sessionCookies?: readonly string[];
  /** How the shop gets the identity. Default: only as the token. */
  readonly forwarding?: IdentityForwarding;
}

interface Authenticated {
  readonly identity: TokenIdentity;
  /** The request to forward, with the verified credentials in canonical spelling and the fields of `auth.forward`. */
  readonly request: CanonicalRequest;
  /** The condition of a row that observes, which is not met. */
  readonly observed?: Rejection;
}

/** The row says `credentials: shop`, and the request has credentials for the shop to check. */
interface Unjudged {
  readonly unjudged: true;
}

const unjudged: Unjudged = { unjudged: true };

type Verdict = Authenticated | Unjudged | Rejection;

/**
 * Checks the credentials, then the token, then the scopes (all are required), then the conditions on claims, then the length of
 * the fields of `auth.forward`. Returns a value, not a promise, if the token is remembered. Rejections: `access-token-missing`, `access-token-invalid`,
 * `access-token-repeated`, `insufficient-scope` (with a challenge), `not-permitted`, `cross-site-request`,
 * `keys-unavailable`, `overloaded`.
 */
export type Authenticate = (
  request: CanonicalRequest,
  requirement: Asked & Pick<Requirement, 'tokenIn' | 'credentials'>,
) => Verdict | Promise<Verdict>;

export function createAuthenticate(options: AuthenticatorOptions): Authenticate {
  const {
    verifier,
    resourceMetadataUrl,
    takesOpaque = false,
    cookieOrigins = [],
    sessionCookies = [],
  } = options;
  const withIdentity = createWithIdentity(options.forwarding ?? tokenAlone);

  function challenge(rejection: Rejection, request: ChallengedRequest, scopes: readonly string[]): Rejection {
    const more = challengeFor(rejection, scopes);
    if (more === undefined) return rejection;
    const metadata = resourceMetadataUrl?.(request);
    return { ...rejection, challenge: buildChallenge({ ...more, resourceMetadataUrl: metadata }) };
  }

  function conclude(
    verdict: TokenIdentity | Rejection,
    { token, canonicalValue }: BearerCredentials,
    request: CanonicalRequest,
    asked: Asked,
  ): Authenticated | Rejection {
    if (isRejection(verdict)) return challenge(verdict, request, asked.scopes);
    const unmet = missingScopes(asked, verdict);
    if (unmet !== undefined)
      return challenge(reject('insufficient-scope', { reason: 'scope', sender: verdict }), request, unmet);
    const refusal = refuseClaims(asked.conditions, token, verdict);
    if (refusal !== undefined) return refusal;
    const named = withIdentity(request, verdict, canonicalValue);
    if (named === 'too-long')
      return challenge(
        reject('access-token-invalid', { reason: 'identity-too-long' }),
        request,
        asked.scopes,
      );
    const observed = refuseClaims(asked.observedConditions, token, verdict);
    const passed = { identity: verdict, request: named };
    return observed === undefined ? passed : { ...passed, observed };
  }

  return (sent, asked) => {
    const { scopes, tokenIn, credentials } = asked;
    const presented: (BearerCredentials & { request?: CanonicalRequest }) | Rejection =
      tokenIn === undefined
        ? readBearerCredentials(sent.fields, takesOpaque)
        : readPresentedToken(sent, tokenIn, cookieOrigins, takesOpaque);
    if (isRejection(presented)) {
      const found = credentials === 'shop' ? findShopCredentials(sent, presented, sessionCookies) : presented;
      return found === 'found' ? unjudged : challenge(found, sent, scopes);
    }
    const { request = sent } = presented;
    const verdict = verifier.verify(presented.token, sent.clientAddress);
    return verdict instanceof Promise
      ? verdict.then((late) => conclude(late, presented, request, asked))
      : conclude(verdict, presented, request, asked);
  };
}

const tokenAlone: IdentityForwarding = { forward: {}, forwardAuthorization: true };

/** The part of a challenge that depends on the refusal (RFC 6750 section 3.1); undefined: none is sent. */
function challengeFor({ rejection, reason }: Rejection, scopes: readonly string[]): Challenge | undefined {
  switch (rejection) {
    case 'access-token-missing':
      return {};
    case 'access-token-repeated':
      return { error: 'invalid_request' };
    case 'access-token-invalid':
      // Credentials of another scheme are no token that could be called invalid.
      return reason === 'other-scheme' ? {} : { error: 'invalid_token' };
    case 'insufficient-scope':
      return { error: 'insufficient_scope', scopes };
    default:
      return undefined;
  }
}

/** Parameters of a `WWW-Authenticate` value (RFC 6750 section 3). */
interface Challenge {
  /** Undefined if the request has no credentials. */
  readonly error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope';
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[];
  /** Where the metadata of the protected resource are (RFC 9728 section 5.1). */
  readonly resourceMetadataUrl?: string | undefined;
}

/** Builds a `WWW-Authenticate` value. It never says more about a failure than `error`. Exported for its tests. */
export function buildChallenge({ error, scopes, resourceMetadataUrl }: Challenge): string {
  const parameters = ['realm="Access to shop API"'];
  if (error !== undefined) parameters.push(`error=${quote(error)}`);
  if (scopes !== undefined && scopes.length > 0) parameters.push(`scope=${quote(scopes.join(' '))}`);
  if (resourceMetadataUrl !== undefined) parameters.push(`resource_metadata=${quote(resourceMetadataUrl)}`);
  return `Bearer ${parameters.join(', ')}`;
}

/** A quoted-string (RFC 9110 section 5.6.4); what cannot stand in one becomes `?`. */
function quote(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

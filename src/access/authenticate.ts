import type { CanonicalRequest } from '../http/canonical-request.ts';
import { isRejection, type Rejection, reject } from '../http/rejection.ts';
import { andThen, type Eventually } from '../lib/eventually.ts';
import type { Admission } from '../proxy/filter.ts';
import { type BearerCredentials, readBearerCredentials } from './bearer-credentials.ts';
import { createWithIdentity, type IdentityForwarding } from './identity-fields.ts';
import {
  type CheckProof,
  certificateReasons,
  createProofCheck,
  type ProofNonces,
  proofAlgorithms,
  proofError,
} from './proof-of-possession.ts';
import type { Requirement } from './protected-list.ts';
import { type Asked, missingScopes, refuseClaims } from './requirement-check.ts';
import type { TokenIdentity } from './token-claims.ts';
import type { AccessTokenVerifier } from './token-issuers.ts';
import { acceptsDpop, type ProofMode } from './token-kind.ts';
import { findShopCredentials, readPresentedToken } from './token-locations.ts';
import type { TokenVerdict } from './token-verifier.ts';

type ChallengedRequest = Pick<CanonicalRequest, 'scheme' | 'host'>;

interface AuthenticatorOptions {
  readonly verifier: AccessTokenVerifier;
  /** Whether a token may have any form, not only that of a JSON Web Token. */
  readonly takesOpaque: boolean;
  /** How clients prove possession of their tokens' keys. Undefined: such tokens are refused. */
  readonly proof: Proofs | undefined;
  readonly resourceMetadataUrl: (request: ChallengedRequest) => string;
  /** Origins whose pages may make changes with a token in a cookie, besides those of the request's own host. */
  readonly cookieOrigins: readonly string[];
  /** Cookies that count as credentials where a row says `credentials: shop`. */
  readonly sessionCookies: readonly string[];
  readonly forwarding: IdentityForwarding;
}

interface Proofs {
  readonly mode: Exclude<ProofMode, 'none'>;
  readonly check: CheckProof;
  /** Undefined: DPoP proofs need no nonce. */
  readonly nonces: ProofNonces | undefined;
}

type Verdict = Admission | Rejection;

/**
 * Checks in this order: credentials, token, proof of possession, scopes, conditions on claims, length of the fields of
 * `auth.forward`. Returns a value, not a promise, if the token is remembered and needs no proof. Rejections:
 * `access-token-missing`, `access-token-invalid`, `access-token-repeated`, `proof-invalid` and `insufficient-scope` with a
 * challenge, `not-permitted`, `cross-site-request`, `keys-unavailable`, `overloaded`. `isProven`: the proof was checked
 * before.
 */
type Authenticate = (
  request: CanonicalRequest,
  requirement: Asked & Pick<Requirement, 'tokenIn' | 'credentials'>,
  isProven?: boolean,
) => Eventually<Verdict>;

export function createAuthenticate(options: AuthenticatorOptions): Authenticate {
  const { verifier, takesOpaque, cookieOrigins, sessionCookies, proof } = options;
  const takesDpop = acceptsDpop(proof?.mode);
  // Without `proof`, the verifier has refused every token that is bound to a key.
  const checkProof = proof?.check ?? createProofCheck();
  const challenge = createChallenge(proof, options.resourceMetadataUrl);
  const permit = createPermit(createWithIdentity(options.forwarding), challenge);

  function conclude(
    verdict: TokenVerdict,
    presented: BearerCredentials,
    request: CanonicalRequest,
    asked: Asked,
    isProven: boolean,
  ): Eventually<Verdict> {
    if (isRejection(verdict)) return challenge(verdict, request, asked, presented.isDpop);
    const isChecked = isProven && verdict.confirmation !== undefined;
    const refused = isChecked ? undefined : checkProof(request, presented, verdict, asked);
    return andThen(refused, (refusal) =>
      refusal === undefined
        ? permit(verdict, presented, request, asked)
        : challenge(refusal, request, asked, presented.isDpop),
    );
  }

  return (sent, asked, isProven = false) => {
    const { tokenIn, credentials } = asked;
    const presented: (BearerCredentials & { request?: CanonicalRequest }) | Rejection =
      tokenIn === undefined
        ? readBearerCredentials(sent.fields, takesOpaque, takesDpop)
        : readPresentedToken(sent, tokenIn, cookieOrigins, takesOpaque, takesDpop);
    if (isRejection(presented)) {
      const found = credentials === 'shop' ? findShopCredentials(sent, presented, sessionCookies) : presented;
      return found === 'found' ? 'unjudged' : challenge(found, sent, asked);
    }
    const { request = sent } = presented;
    const pending = verifier.verify(presented.token, sent.clientAddress);
    return andThen(pending, (verdict) => conclude(verdict, presented, request, asked, isProven));
  };
}

function createPermit(
  withIdentity: ReturnType<typeof createWithIdentity>,
  challenge: ReturnType<typeof createChallenge>,
) {
  return (
    identity: TokenIdentity,
    { token, canonicalValue, isDpop }: BearerCredentials,
    request: CanonicalRequest,
    asked: Asked,
  ): Verdict => {
    const unmet = missingScopes(asked, identity);
    if (unmet !== undefined) {
      const refusal = reject('insufficient-scope', { reason: 'scope', sender: identity });
      return challenge(refusal, request, { ...asked, scopes: unmet }, isDpop);
    }
    const refusal = refuseClaims(asked.conditions, token, identity);
    if (refusal !== undefined) return refusal;
    const named = withIdentity(request, identity, canonicalValue);
    if (named === 'too-long') {
      const tooLong = reject('access-token-invalid', { reason: 'identity-too-long' });
      return challenge(tooLong, request, asked, isDpop);
    }
    const observed = refuseClaims(asked.observedConditions, token, identity);
    const passed = { identity, request: named };
    return observed === undefined ? passed : { ...passed, observed };
  };
}

/** Adds the challenge to a refusal that has one. `isDpop`: the client used the scheme DPoP. */
function createChallenge(
  proofs: Proofs | undefined,
  resourceMetadataUrl: AuthenticatorOptions['resourceMetadataUrl'],
) {
  return (rejection: Rejection, request: ChallengedRequest, { scopes, proof }: Asked, isDpop = false) => {
    const more = challengeFor(rejection, scopes);
    if (more === undefined) return rejection;
    const all = { ...more, resourceMetadataUrl: resourceMetadataUrl(request) };
    if (!acceptsDpop(proofs?.mode)) return { ...rejection, challenge: buildChallenge(all) };
    const isOfProof =
      rejection.rejection === 'proof-invalid' && !certificateReasons.includes(rejection.reason ?? '');
    const isRequired = proof === 'required' && proofs?.mode === 'dpop';
    // A token without a key can be replaced by one of either kind.
    const isEither = rejection.reason === 'unbound' && proofs?.mode === 'any';
    const isDpopAlone = !isEither && (isDpop || isOfProof || isRequired);
    if (!isDpopAlone && !isEither && more.error !== undefined)
      return { ...rejection, challenge: buildChallenge(all) };
    const challenge = isDpopAlone
      ? buildChallenge(all, 'DPoP')
      : `${buildChallenge(all)}, ${buildChallenge({}, 'DPoP')}`;
    const nonce = proofs?.nonces?.current();
    return { ...rejection, challenge, ...(nonce !== undefined && { fields: ['DPoP-Nonce', nonce] }) };
  };
}

/** The part of a challenge that depends on the refusal (RFC 6750 section 3.1); undefined: no challenge is sent. */
function challengeFor({ rejection, reason }: Rejection, scopes: readonly string[]): Challenge | undefined {
  switch (rejection) {
    case 'access-token-missing':
      return {};
    case 'access-token-repeated':
      return { error: 'invalid_request' };
    case 'access-token-invalid':
      // Credentials of another scheme contain no token, so `invalid_token` would be wrong.
      return reason === 'other-scheme' ? {} : { error: 'invalid_token' };
    case 'proof-invalid':
      return { error: proofError(reason) };
    case 'insufficient-scope':
      return { error: 'insufficient_scope', scopes };
    default:
      return undefined;
  }
}

/** Parameters of a `WWW-Authenticate` value (RFC 6750 section 3, RFC 9449 section 7.1). */
interface Challenge {
  readonly error?: 'invalid_request' | ReturnType<typeof proofError> | 'insufficient_scope';
  readonly scopes?: readonly string[];
  /** Address of the metadata of the protected resource (RFC 9728 section 5.1). */
  readonly resourceMetadataUrl?: string | undefined;
}

/** Builds a `WWW-Authenticate` value. Of a failure it tells `error` and `scope` alone. Exported for its tests. */
export function buildChallenge(
  { error, scopes, resourceMetadataUrl }: Challenge,
  scheme: 'Bearer' | 'DPoP' = 'Bearer',
): string {
  const parameters = ['realm="Access to shop API"'];
  if (error !== undefined) parameters.push(`error=${quote(error)}`);
  if (scopes !== undefined && scopes.length > 0) parameters.push(`scope=${quote(scopes.join(' '))}`);
  if (resourceMetadataUrl !== undefined) parameters.push(`resource_metadata=${quote(resourceMetadataUrl)}`);
  if (scheme === 'DPoP') parameters.push(`algs=${quote(proofAlgorithms.join(' '))}`);
  return `${scheme} ${parameters.join(', ')}`;
}

/** A quoted-string (RFC 9110 section 5.6.4); characters that it cannot contain become `?`. */
function quote(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

import type { Eventually } from '../lib/eventually.ts';
import { isCompactToken, readTokenPart } from './bearer-credentials.ts';
import type { TokenRefusal } from './token-claims.ts';
import { refuseToken, type TokenVerdict } from './token-verifier.ts';

export interface AccessTokenVerifier {
  /** `clientAddress`: the sender of the token. */
  verify(token: string, clientAddress?: string): Eventually<TokenVerdict>;
}

/** An issuer of access tokens. Issuers share nothing: no keys, no remembered tokens, no limits. */
export interface TokenIssuer {
  /** Undefined: there is only one issuer. */
  readonly name: string | undefined;
  /** `iss` of its tokens, octet for octet; may be undefined if it is the only issuer. */
  readonly issuer: string | undefined;
  /** For JSON Web Tokens. Undefined: the issuer has no keys here, so its JSON Web Tokens are introspected. */
  readonly signed: AccessTokenVerifier | undefined;
  /** For all other tokens. Undefined: the issuer has no introspection endpoint. */
  readonly introspected: AccessTokenVerifier | undefined;
}

export interface ChosenIssuer<Issuer extends TokenIssuer> {
  readonly issuer: Issuer;
  readonly by: 'keys' | 'introspection';
  readonly verifier: AccessTokenVerifier;
}

/**
 * The issuers of access tokens. A token goes to one of them: a JSON Web Token by its unverified `iss`, any other to the one
 * with introspection. A false `iss` selects an issuer that did not sign the token, so it is refused.
 */
export class TokenIssuers<Issuer extends TokenIssuer = TokenIssuer> implements AccessTokenVerifier {
  readonly all: readonly Issuer[];
  readonly #byName: ReadonlyMap<string | undefined, Issuer>;
  readonly #opaque: Issuer | undefined;

  constructor(all: readonly Issuer[]) {
    this.all = all;
    this.#byName = new Map(all.map((issuer) => [issuer.issuer, issuer]));
    this.#opaque = all.find(({ introspected }) => introspected !== undefined);
  }

  /** Whether tokens other than JSON Web Tokens are accepted. */
  get takesOpaque(): boolean {
    return this.#opaque !== undefined;
  }

  /** A verifier for all issuers. If there is only one verifier, returns it, since no choice is needed. */
  get verifier(): AccessTokenVerifier {
    const verifiers = this.all.flatMap(({ signed, introspected }) => [signed, introspected]);
    const [only = this, another] = verifiers.filter((one) => one !== undefined);
    return another === undefined ? only : this;
  }

  verify(token: string, clientAddress?: string): Eventually<TokenVerdict> {
    const chosen = this.choose(token);
    return typeof chosen === 'string' ? refuseToken(chosen) : chosen.verifier.verify(token, clientAddress);
  }

  choose(token: string): ChosenIssuer<Issuer> | TokenRefusal {
    if (this.#opaque?.introspected !== undefined && !isSigned(token)) {
      return { issuer: this.#opaque, by: 'introspection', verifier: this.#opaque.introspected };
    }
    const issuer = this.all.length === 1 ? this.all[0] : this.#find(token);
    if (typeof issuer === 'string') return issuer;
    if (issuer?.signed !== undefined) return { issuer, by: 'keys', verifier: issuer.signed };
    if (issuer?.introspected === undefined) return 'issuer';
    return { issuer, by: 'introspection', verifier: issuer.introspected };
  }

  #find(token: string): Issuer | TokenRefusal {
    const claims = readTokenPart(token, 1);
    if (claims === undefined) return 'malformed';
    // A token without `iss` matches no issuer: if there are several, each has an `iss`.
    return (typeof claims.iss === 'string' ? this.#byName.get(claims.iss) : undefined) ?? 'issuer';
  }
}

/** Whether a token looks like a JSON Web Signature; any other can only be introspected. */
function isSigned(token: string): boolean {
  return isCompactToken(token) && readTokenPart(token, 0)?.alg !== undefined;
}

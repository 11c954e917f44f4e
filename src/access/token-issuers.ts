import type { Rejection } from '../http/rejection.ts';
import { parseJsonObject } from '../lib/json.ts';
import { isCompactToken } from './bearer-credentials.ts';
import type { Identity, TokenRefusal } from './token-claims.ts';
import { refuseToken } from './token-verifier.ts';

/** Says whom a token names, or why it names nobody. */
export interface AccessTokenVerifier {
  /** `clientAddress`: who shows it. */
  verify(token: string, clientAddress?: string): Identity | Rejection | Promise<Identity | Rejection>;
}

/** Who issues access tokens. Nothing of it is shared with another: no key, no remembered token, no limit. */
export interface TokenIssuer {
  /** Undefined: it is the only one. */
  readonly name: string | undefined;
  /** `iss` of its tokens, octet for octet; of the only one it need not be known. */
  readonly issuer: string | undefined;
  /** For JSON Web Tokens; undefined: it has no keys, and is asked about them, too. */
  readonly signed: AccessTokenVerifier | undefined;
  /** For the others; undefined: it is never asked. */
  readonly introspected: AccessTokenVerifier | undefined;
}

export interface ChosenIssuer<Issuer extends TokenIssuer> {
  readonly issuer: Issuer;
  readonly by: 'keys' | 'introspection';
  readonly verifier: AccessTokenVerifier;
}

/**
 * The issuers of access tokens. A token is given to one of them, chosen by what it says of itself, unverified: `iss`.
 * A lie there leads to an issuer whose keys did not sign it, and who compares `iss` again once the signature is good.
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

  /** Whether tokens may have another form than that of a JSON Web Token. */
  get takesOpaque(): boolean {
    return this.#opaque !== undefined;
  }

  /** The same verdicts with nothing in between where there is nothing to choose. */
  get verifier(): AccessTokenVerifier {
    const [first] = this.all;
    if (first === undefined || this.all.length > 1) return this;
    return (
      (first.signed === undefined ? first.introspected : first.introspected ? this : first.signed) ?? this
    );
  }

  verify(token: string, clientAddress?: string): Identity | Rejection | Promise<Identity | Rejection> {
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
    const claims = readPart(token, 1);
    if (claims === undefined) return 'malformed';
    // Never an absent one: the map knows none where there are several.
    return (typeof claims.iss === 'string' ? this.#byName.get(claims.iss) : undefined) ?? 'issuer';
  }
}

/** A JSON Web Signature by its looks: what is none can only be asked about. */
function isSigned(token: string): boolean {
  return isCompactToken(token) && readPart(token, 0)?.alg !== undefined;
}

function readPart(token: string, index: 0 | 1) {
  return parseJsonObject(Buffer.from(token.split('.', 2)[index] ?? '', 'base64url'));
}

import { createCipheriv, createDecipheriv, randomBytes, scryptSync } from 'node:crypto';
import { calculateJwkThumbprint, decodeJwt, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { defaultCustomerReference } from './data/ids.ts';

/** The user of a token. The shop writes this object as a JSON string into `sub`. */
export type TokenUser = { readonly reference: string; readonly idCompanyUser: string | null };

/** The value `undefined` leaves a claim out. */
export type TokenClaims = Readonly<Record<string, unknown>>;

export function subjectOf({ reference, idCompanyUser }: TokenUser): string {
  return JSON.stringify({
    id_company_user: idCompanyUser,
    id_agent: null,
    customer_reference: reference,
    id_customer: Number(reference.replace(/\D/g, '')),
    permissions: null,
  });
}

/**
 * Reads the user of a bearer token WITHOUT verifying it; verification would hide what shopward adds. As in a real shop, the
 * field is split at white space, and text after the token is ignored.
 */
export function readBearer(authorization: string | undefined): TokenUser | null {
  const token = authorization?.trim().split(/\s+/)[1];
  if (token === undefined) return null;
  try {
    const { sub } = decodeJwt(token);
    if (typeof sub !== 'string' || sub === '') return null;
    if (!sub.startsWith('{')) return { reference: sub, idCompanyUser: null };
    const { customer_reference: reference, id_company_user: company } = JSON.parse(sub);
    if (typeof reference !== 'string') return null;
    return { reference, idCompanyUser: typeof company === 'string' ? company : null };
  } catch {
    return null;
  }
}

/** Lifetime of an access token: 8 hours. */
export const accessTokenSeconds = 28_800;

export type SigningKey = Awaited<ReturnType<typeof generateSigningKey>>;

export async function generateSigningKey() {
  const { privateKey, publicKey } = await generateKeyPair('RS256');
  const jwk = await exportJWK(publicKey);
  return { privateKey, jwk: { ...jwk, kid: await calculateJwkThumbprint(jwk), use: 'sig', alg: 'RS256' } };
}

export class SigningKeys {
  #keys: readonly [SigningKey, ...SigningKey[]];

  constructor(first: SigningKey) {
    this.#keys = [first];
  }

  /** Public keys, the newest first. */
  jwks(): { keys: JWK[] } {
    return { keys: this.#keys.map((key) => key.jwk) };
  }

  /** Signs with a new key from now on; `keepOld: false` removes the old ones from the key set. */
  async rotate({ keepOld = true }: { keepOld?: boolean } = {}): Promise<void> {
    this.#keys = [await generateSigningKey(), ...(keepOld ? this.#keys : [])];
  }

  /** Writes claims and header as the shop's OAuth library does: fractional dates, no `iss`, no `kid`. */
  issue(claims: TokenClaims): Promise<string> {
    const now = Date.now() / 1000;
    const payload = {
      ...{ aud: 'frontend', jti: randomBytes(40).toString('hex'), scopes: ['customer'] },
      ...{ iat: now, nbf: now, exp: now + accessTokenSeconds },
      sub: subjectOf({ reference: defaultCustomerReference, idCompanyUser: null }),
      ...claims,
    };
    const signer = new SignJWT(payload).setProtectedHeader({ typ: 'JWT', alg: 'RS256' });
    return signer.sign(this.#keys[0].privateKey);
  }
}

const cipher = 'aes-256-gcm';
const prefix = 'def50200';

/**
 * Refresh tokens are hex that only the shop can decrypt, as in a real shop (`def50200…`). The demo shop accepts any token
 * that it can decrypt: it has no list of used, revoked or expired ones, so each refusal is shopward's.
 */
export class RefreshTokens {
  readonly #key = randomBytes(32);

  seal(user: TokenUser): string {
    const iv = randomBytes(12);
    const sealing = createCipheriv(cipher, this.#key, iv);
    const content = JSON.stringify({ user, refresh_token_id: randomBytes(40).toString('hex') });
    const sealed = Buffer.concat([sealing.update(content), sealing.final()]);
    return prefix + Buffer.concat([iv, sealing.getAuthTag(), sealed]).toString('hex');
  }

  open(token: string): TokenUser | null {
    // A real shop refuses text with any character that is not hex; Node would decode up to that character.
    if (!token.startsWith(prefix) || !/^(?:[0-9a-f]{2})+$/i.test(token)) return null;
    const bytes = Buffer.from(token.slice(prefix.length), 'hex');
    try {
      const opening = createDecipheriv(cipher, this.#key, bytes.subarray(0, 12), { authTagLength: 16 });
      opening.setAuthTag(bytes.subarray(12, 28));
      return JSON.parse(opening.update(bytes.subarray(28), undefined, 'utf8') + opening.final('utf8')).user;
    } catch {
      return null;
    }
  }
}

/** The cost is low on purpose: seeding must be fast, and the tour prints these passwords. */
export function hashPassword(password: string, salt = randomBytes(16).toString('hex')): string {
  return `${salt}:${scryptSync(password, salt, 32, { N: 1024 }).toString('hex')}`;
}

export function isPasswordOf(password: string, passwordHash: string): boolean {
  return hashPassword(password, passwordHash.split(':', 1)[0]) === passwordHash;
}

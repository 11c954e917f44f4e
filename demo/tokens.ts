import { createCipheriv, createDecipheriv, randomBytes, scryptSync, timingSafeEqual } from 'node:crypto';
import type { JWK } from 'jose';
import { calculateJwkThumbprint, decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { defaultCustomerReference } from './data/ids.ts';
import type { ShopSettings } from './settings.ts';

/** Who a token speaks for. The shop writes this object as a JSON string into `sub`. */
export type TokenUser = { readonly reference: string; readonly idCompanyUser: string | null };

export type TokenClaims = Readonly<Record<string, unknown>>;

/** `undefined` as the value of a claim leaves it out. */
export type IssueToken = (claims?: TokenClaims) => Promise<string>;

export function subjectOf(user: TokenUser): string {
  return JSON.stringify({
    id_company_user: user.idCompanyUser,
    id_agent: null,
    customer_reference: user.reference,
    id_customer: Number(user.reference.replace(/\D/g, '')),
    permissions: null,
  });
}

/** Claims and header as the shop's OAuth library writes them: fractional dates, no `iss`, no `kid`. */
export function createTokenIssuer(
  keys: SigningKeys,
  settings: Pick<ShopSettings, 'accessTokenLifetimeSeconds'>,
): IssueToken {
  return (claims = {}) => {
    const now = Date.now() / 1000;
    const payload = {
      aud: 'frontend',
      jti: randomBytes(40).toString('hex'),
      ...{ iat: now, nbf: now, exp: now + settings.accessTokenLifetimeSeconds },
      sub: subjectOf({ reference: defaultCustomerReference, idCompanyUser: null }),
      scopes: ['customer'],
      ...claims,
    };
    const signer = new SignJWT(payload).setProtectedHeader({ typ: 'JWT', alg: 'RS256' });
    return signer.sign(keys.current().privateKey);
  };
}

/**
 * Reads who a bearer token speaks for WITHOUT verifying it: what shopward adds would otherwise not be seen.
 * As in a real shop the field is split at white space, and whatever follows the token is ignored.
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

export type SigningKey = {
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
};

export class SigningKeys {
  #keys: [SigningKey, ...SigningKey[]];

  private constructor(first: SigningKey) {
    this.#keys = [first];
  }

  static async create(): Promise<SigningKeys> {
    return new SigningKeys(await generateSigningKey());
  }

  /** The key that signs new tokens. */
  current(): SigningKey {
    return this.#keys[0];
  }

  /** Public keys, newest first. */
  jwks(): { keys: JWK[] } {
    return { keys: this.#keys.map((key) => key.jwk) };
  }

  /** Signs with a new key from now on; `keepOld: false` withdraws the old ones from the key set. */
  async rotate({ keepOld = true }: { keepOld?: boolean } = {}): Promise<void> {
    const created = await generateSigningKey();
    this.#keys = keepOld ? [created, ...this.#keys] : [created];
  }
}

async function generateSigningKey(): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const kid = await calculateJwkThumbprint(jwk);
  return { privateKey, jwk: { ...jwk, kid, use: 'sig', alg: 'RS256' } };
}

const prefix = 'def50200';

/**
 * Refresh tokens are opaque hex that only the shop can open, as those of a real shop (`def50200…`). The demo shop
 * exchanges whatever opens: it keeps no list of used, revoked or expired ones, so that what shopward refuses is seen.
 */
export class RefreshTokens {
  readonly #key = randomBytes(32);
  readonly #lifetimeSeconds: number;

  constructor(lifetimeSeconds: number) {
    this.#lifetimeSeconds = lifetimeSeconds;
  }

  seal(user: TokenUser): string {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv);
    const expires = Math.floor(Date.now() / 1000) + this.#lifetimeSeconds;
    const id = randomBytes(40).toString('hex');
    const content = JSON.stringify({
      user,
      refresh_token_id: id,
      client_id: 'frontend',
      expire_time: expires,
    });
    const sealed = Buffer.concat([cipher.update(content, 'utf8'), cipher.final()]);
    return prefix + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('hex');
  }

  open(token: string): TokenUser | null {
    // A real shop's decoder refuses what is not hex to the end; node's would stop there and open the rest.
    if (!token.startsWith(prefix) || !/^(?:[0-9a-f]{2})+$/i.test(token)) return null;
    const bytes = Buffer.from(token.slice(prefix.length), 'hex');
    if (bytes.length < 29) return null;
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, 12));
      decipher.setAuthTag(bytes.subarray(12, 28));
      const content = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]);
      return JSON.parse(String(content)).user;
    } catch {
      return null;
    }
  }
}

/** A low cost on purpose: seeding a shop must not take seconds, and these passwords are printed in its tour. */
const cost = { N: 1024 };

export function hashPassword(password: string): string {
  const salt = randomBytes(16);
  return `${salt.toString('hex')}:${scryptSync(password, salt, 32, cost).toString('hex')}`;
}

export function isPasswordOf(password: string, passwordHash: string): boolean {
  const [salt, hash] = passwordHash.split(':');
  if (salt === undefined || hash === undefined) return false;
  const given = scryptSync(password, Buffer.from(salt, 'hex'), 32, cost);
  return timingSafeEqual(given, Buffer.from(hash, 'hex'));
}

import { randomBytes } from 'node:crypto';
import { decodeJwt, SignJWT } from 'jose';
import { companyUsers } from '../data/companies.ts';
import type { ShopSettings } from '../settings.ts';
import type { SigningKeys } from './signing-keys.ts';

/** Who a token speaks for. The shop writes this object as a JSON string into `sub`. */
export type TokenUser = { readonly reference: string; readonly idCompanyUser: string | null };

export type TokenClaims = Readonly<Record<string, unknown>>;

/** `undefined` as the value of a claim leaves it out. */
export type IssueToken = (claims?: TokenClaims) => Promise<string>;

export function subjectOf(user: TokenUser): string {
  const idCustomer = Number(user.reference.replace(/\D/g, ''));
  return JSON.stringify({
    id_company_user: user.idCompanyUser,
    id_agent: null,
    customer_reference: user.reference,
    id_customer: idCustomer,
    permissions: null,
  });
}

export function defaultCompanyUserOf(reference: string): string | null {
  return companyUsers.find((user) => user.customer === reference)?.id ?? null;
}

/** Claims and header as the shop's OAuth library writes them: fractional dates, no `iss`, no `kid`. */
export function createTokenIssuer(
  keys: SigningKeys,
  settings: Pick<ShopSettings, 'accessTokenLifetimeSeconds' | 'defaultCustomer'>,
): IssueToken {
  return (claims = {}) => {
    const now = Date.now() / 1000;
    const user = { reference: settings.defaultCustomer, idCompanyUser: null };
    const payload = {
      aud: 'frontend',
      jti: randomBytes(40).toString('hex'),
      iat: now,
      nbf: now,
      exp: now + settings.accessTokenLifetimeSeconds,
      sub: subjectOf(user),
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
    return readSubject(decodeJwt(token).sub);
  } catch {
    return null;
  }
}

function readSubject(sub: unknown): TokenUser | null {
  if (typeof sub !== 'string' || sub === '') return null;
  if (!sub.startsWith('{')) return { reference: sub, idCompanyUser: null };
  const subject: unknown = JSON.parse(sub);
  if (typeof subject !== 'object' || subject === null || !('customer_reference' in subject)) return null;
  const reference = subject.customer_reference;
  if (typeof reference !== 'string') return null;
  const company = 'id_company_user' in subject ? subject.id_company_user : null;
  return { reference, idCompanyUser: typeof company === 'string' ? company : null };
}

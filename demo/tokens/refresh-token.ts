import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { TokenUser } from './access-token.ts';

/**
 * Refresh tokens are opaque hex that only the shop can open, as those of a real shop (`def50200…`). The demo shop
 * exchanges whatever opens: it keeps no list of used, revoked or expired ones, so that what shopward refuses is seen.
 */
export type RefreshTokens = {
  seal(user: TokenUser): string;
  open(token: string): TokenUser | null;
};

const prefix = 'def50200';

export function createRefreshTokens(lifetimeSeconds: number): RefreshTokens {
  const key = randomBytes(32);
  return {
    seal(user) {
      const iv = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      const content = JSON.stringify({
        customer_reference: user.reference,
        id_company_user: user.idCompanyUser,
        refresh_token_id: randomBytes(40).toString('hex'),
        client_id: 'frontend',
        expire_time: Math.floor(Date.now() / 1000) + lifetimeSeconds,
      });
      const sealed = Buffer.concat([cipher.update(content, 'utf8'), cipher.final()]);
      return prefix + Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('hex');
    },
    open(token) {
      // A real shop's decoder refuses what is not hex to the end; node's would stop there and open the rest.
      if (!token.startsWith(prefix) || !/^(?:[0-9a-f]{2})+$/i.test(token)) return null;
      const bytes = Buffer.from(token.slice(prefix.length), 'hex');
      if (bytes.length < 29) return null;
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
        decipher.setAuthTag(bytes.subarray(12, 28));
        const content = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString(
          'utf8',
        );
        const { customer_reference: reference, id_company_user: idCompanyUser } = JSON.parse(content);
        return { reference, idCompanyUser };
      } catch {
        return null;
      }
    },
  };
}

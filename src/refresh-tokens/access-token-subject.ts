import { decodeJwt } from 'jose/jwt/decode';

/**
 * Whose an access token is, for bookkeeping only: it is decoded and NOT verified. It must come from the shop's own
 * answer. `readSubject` is the one that verified tokens are read with, so that both name a user alike.
 */
export function createAccessTokenSubject(
  readSubject: (claims: Readonly<Record<string, unknown>>) => string | undefined,
): (accessToken: string) => string | undefined {
  return (accessToken) => {
    try {
      return readSubject(decodeJwt(accessToken));
    } catch {
      return undefined;
    }
  };
}

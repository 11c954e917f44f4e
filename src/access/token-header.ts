import { parseJsonObject } from './token-json.ts';
import type { TokenRefusal } from './token-refusal.ts';

/** What of a JOSE header chooses the key. `jku`, `jwk`, `x5u` and `x5c` are never looked at: keys come from us. */
export interface TokenHeader {
  readonly alg: string;
  readonly kid: string | undefined;
}

/** Reads and checks the header of a compact token before any cryptography (RFC 7515 section 4.1). */
export function readTokenHeader(token: string, algorithms: readonly string[]): TokenHeader | TokenRefusal {
  const header = parseJsonObject(Buffer.from(token.slice(0, token.indexOf('.')), 'base64url'));
  if (header === undefined) return 'malformed';
  const { alg, kid } = header;
  if (typeof alg !== 'string' || !algorithms.includes(alg)) return 'algorithm';
  if (Object.hasOwn(header, 'crit') || Object.hasOwn(header, 'b64')) return 'critical';
  if (kid !== undefined && typeof kid !== 'string') return 'malformed';
  return { alg, kid };
}

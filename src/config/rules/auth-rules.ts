import type { SettingProblem } from '../issues.ts';
import { isLinkLocal, isLoopback } from '../origin.ts';
import type { Config } from '../schema.ts';
import { linkLocalText } from './listener-rules.ts';

/** Bytes of a secret, at least as many as the hash has (RFC 7518 section 3.2). */
const secretBytes: Readonly<Record<string, number>> = { HS256: 32, HS384: 48, HS512: 64 };

/** Keys and algorithms must be of one kind: a public key must never be taken for a secret. */
export function authProblems({ auth }: Pick<Config, 'auth'>): SettingProblem[] {
  const { algorithms, keys } = auth;
  const isSymmetric = 'secret' in keys;
  const problems: SettingProblem[] = [];
  for (const [index, algorithm] of algorithms.entries()) {
    const path = ['auth', 'algorithms', index];
    const bytes = secretBytes[algorithm];
    if ((bytes !== undefined) !== isSymmetric) {
      problems.push({
        path,
        text: isSymmetric ? `${algorithm} does not work with keys.secret` : `${algorithm} needs keys.secret`,
      });
    } else if (bytes !== undefined && 'secret' in keys && Buffer.byteLength(keys.secret) < bytes) {
      const text = `must have at least ${bytes} bytes for ${algorithm} (RFC 7518 section 3.2)`;
      problems.push({ path: ['auth', 'keys', 'secret'], text });
    }
  }
  // A public key as HMAC secret is known to everybody.
  if ('secret' in keys && keys.secret.includes('-----BEGIN ')) {
    const text = 'is PEM, not a secret; name public keys in auth.keys.files';
    problems.push({ path: ['auth', 'keys', 'secret'], text });
  }
  if ('jwks' in keys) problems.push(...jwksWarnings(keys.jwks));
  return problems;
}

function jwksWarnings(jwks: string): SettingProblem[] {
  const path = ['auth', 'keys', 'jwks'];
  const [, scheme = '', authority = ''] = /^(https?):\/\/(\[[^\]]*\]|[^/:?]*)/i.exec(jwks) ?? [];
  const host = authority.replace(/^\[|\]$/g, '');
  const problems: SettingProblem[] = [];
  if (scheme.toLowerCase() !== 'https' && !isLoopback(host)) {
    const text = 'is fetched without TLS: whoever can change that traffic can sign tokens';
    problems.push({ path, text, severity: 'warning' });
  }
  if (isLinkLocal(host)) problems.push({ path, text: linkLocalText, severity: 'warning' });
  return problems;
}

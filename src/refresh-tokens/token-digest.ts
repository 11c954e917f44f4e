import { createHmac } from 'node:crypto';
import type { SubjectDigest, TokenDigest } from './token-store.ts';

/** What stands in the store instead of tokens and names of users. */
export interface Digests {
  /** One digest for every spelling that a shop may take for the same token. */
  ofToken(token: string): TokenDigest;
  ofSubject(subject: string): SubjectDigest;
}

/**
 * Keyed digests (HMAC-SHA-256, hexadecimal), tokens and subjects apart. Without a key tokens are still safe, since they
 * are random; names of users can be found out by trying. Another key makes every token unknown.
 */
export function createDigests(key = ''): Digests {
  const digest = (domain: string, text: string) =>
    createHmac('sha256', `shopward ${domain} ${key}`).update(text).digest('hex');
  return {
    ofToken: (token) => digest('refresh token', canonicalToken(token)) as TokenDigest,
    ofSubject: (subject) => digest('subject', subject) as SubjectDigest,
  };
}

/**
 * Shops decode hexadecimal whatever its case, databases compare without case and trailing spaces, base64url has loose
 * last bits, and the signature of a JWT can be written in more than one way while header and payload can not.
 */
export function canonicalToken(token: string): string {
  const trimmed = trimInk(token);
  const [header, payload, signature, ...more] = trimmed.split('.');
  const isJwt = header && payload && signature !== undefined && more.length === 0;
  return (isJwt ? `${recode(header)}.${recode(payload)}` : trimmed).toLowerCase();
}

/** Without white space and control characters at either end; linear, as a regular expression would not be. */
function trimInk(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text.charCodeAt(start) <= 0x20) start += 1;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end -= 1;
  return text.slice(start, end).trim();
}

function recode(segment: string): string {
  return Buffer.from(segment, 'base64').toString('base64url');
}

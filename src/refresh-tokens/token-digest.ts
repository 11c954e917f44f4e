import { createHmac } from 'node:crypto';
import type { SubjectDigest, TokenDigest } from './token-values.ts';

/** The digests that the store has instead of tokens and names of users. */
export interface Digests {
  /** The digest under which a token is recorded. */
  ofToken(token: string): TokenDigest;
  /** `ofToken` first, then the digests of other tokens that a lenient shop may read in it. */
  ofInterpretations(token: string): readonly TokenDigest[];
  ofSubject(subject: string): SubjectDigest;
}

/** 132 bits: RFC 2104 section 5 allows half of the hash, and a record is mostly digests. */
const digestLength = 22;

/**
 * Creates keyed digests: 132 bits of an HMAC-SHA-256, in base64url, with separate domains for tokens and subjects. Without
 * a key tokens are still safe, since they are random, but names of users can be guessed. With another key every token is unknown.
 */
export function createDigests(key = ''): Digests {
  const digest = (domain: string, text: string) =>
    createHmac('sha256', `shopward ${domain} ${key}`).update(text).digest('base64url').slice(0, digestLength);
  const ofText = (text: string) => digest('refresh token', text) as TokenDigest;
  return {
    ofToken: (token) => ofText(canonicalToken(token)),
    ofInterpretations: (token) => interpretationsOf(token).map(ofText),
    ofSubject: (subject) => digest('subject', subject) as SubjectDigest,
  };
}

/**
 * Whether a token has only characters that all parsers read alike: printable ASCII (RFC 6749 appendix A.17) without those that
 * some decode, quote or split at. `=` only at the end, since some base64 decoders stop at it and others go on.
 */
export function isPlainToken(token: string): boolean {
  return plainToken.test(token);
}

const plainToken = /^[\w!#$()*+./:?@^|~-]+={0,2}$/;

/**
 * The same text for all spellings that a shop may read as one token. Hexadecimal is decoded in any case; databases compare
 * without case and trailing spaces; base64 has two alphabets and unused last bits, and its decoders skip other characters; of
 * a JWT only header and payload count, since its signature has several spellings. Exported for its tests.
 */
export function canonicalToken(token: string): string {
  const segments = token.split('.');
  if (isJwt(segments)) return segments.slice(0, 2).map(recode).join('.').toLowerCase();
  const hasWords = words.test(token);
  const texts = segments.map((segment) => {
    const text = segment
      .replace(/[^\w+/-]/g, '')
      .replaceAll('-', '+')
      .replaceAll('_', '/');
    return hasWords ? text : withoutLooseEnd(text);
  });
  return texts.join('.').toLowerCase();
}

/**
 * The canonical token, and the texts that it becomes in decoders that also skip `.`, `-` and `_`, or end hexadecimal at the
 * first other character. A refresh claims, and uses up, all of them.
 */
function interpretationsOf(token: string): readonly string[] {
  const canonical = canonicalToken(token);
  if (isJwt(token.split('.')) || words.test(token)) return [canonical];
  const interpretations = new Set([
    canonical,
    withoutLooseEnd(token.replace(/[^A-Za-z0-9+/]/g, '')).toLowerCase(),
  ]);
  const hex = hexAndMore.exec(token)?.[1];
  if (hex !== undefined) interpretations.add(withoutLooseEnd(hex).toLowerCase());
  return [...interpretations];
}

/** Characters of base64 that encode 128 bits. A shorter text is no secret, and is taken as it is. */
const shortest = 22;
const hexAndMore = /^([0-9A-Fa-f]{22,})[^0-9A-Fa-f.:|~_+/=-]/;
/** Words and numbers, such as `refresh-token-17`: not base64, and its last digit may count. */
const words = /^(?:[A-Za-z]+|\d+)(?:[.:|_-](?:[A-Za-z]+|\d+))*$/;

/**
 * Cuts off a last character of which decoders use only some bits, or none: after the last group of four in base64, after the
 * last pair in hexadecimal. Two random tokens do not differ in that character alone.
 */
function withoutLooseEnd(text: string): string {
  if (text.length < shortest) return text;
  const isLoose = /[^0-9A-Fa-f]/.test(text) ? text.length % 4 !== 0 : text.length % 2 === 1;
  return isLoose ? text.slice(0, -1) : text;
}

/** Whether it looks like a JWT (RFC 7519 section 3); other tokens have three segments too. */
function isJwt(segments: readonly string[]): boolean {
  const [header = '', payload = ''] = segments;
  return segments.length === 3 && payload !== '' && header.startsWith('ey');
}

function recode(segment: string): string {
  return Buffer.from(segment, 'base64').toString('base64url');
}

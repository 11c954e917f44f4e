import { createHmac } from 'node:crypto';
import type { SubjectDigest, TokenDigest } from './token-store.ts';

/** What stands in the store instead of tokens and names of users. */
export interface Digests {
  /** The digest under which a token is kept. */
  ofToken(token: string): TokenDigest;
  /** That one first, and those of other tokens that a lenient shop may take it for. */
  ofInterpretations(token: string): readonly TokenDigest[];
  ofSubject(subject: string): SubjectDigest;
}

/** 128 bits: as few as RFC 2104 section 5 allows of this one. A record is mostly digests. */
const digestDigits = 32;

/**
 * Keyed digests (HMAC-SHA-256, its first half, hexadecimal), tokens and subjects apart. Without a key tokens are still safe, since they
 * are random; names of users can be found out by trying. Another key makes every token unknown.
 */
export function createDigests(key = ''): Digests {
  const digest = (domain: string, text: string) =>
    createHmac('sha256', `shopward ${domain} ${key}`).update(text).digest('hex').slice(0, digestDigits);
  const ofText = (text: string) => digest('refresh token', text) as TokenDigest;
  return {
    ofToken: (token) => ofText(canonicalToken(token)),
    ofInterpretations: (token) => interpretationsOf(token).map(ofText),
    ofSubject: (subject) => digest('subject', subject) as SubjectDigest,
  };
}

/**
 * Whether a token consists of what tokens consist of: printable ASCII (RFC 6749 appendix A.17) but for what some reader
 * decodes, quotes or splits at; `=` at the end only, since decoders of base64 stop at it, or go on.
 */
export function isPlainToken(token: string): boolean {
  return plainToken.test(token);
}

const plainToken = /^[\w!#$()*+./:?@^|~-]+={0,2}$/;

/**
 * One text for every spelling that a shop may take for the same token: shops decode hexadecimal whatever its case,
 * databases compare without case and trailing spaces, base64 has two alphabets and loose last bits, its decoders skip
 * what is not of them, and the signature of a JWT can be written in more than one way while header and payload can not.
 * Exported for its tests.
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
 * The canonical token, and what decoders read that skip `.`, `-` and `_` as well, or end hexadecimal at the first other
 * letter. Whoever refreshes a token refreshes, and uses up, all of them.
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

/** Characters of base64 that hold 128 bits; what is shorter is no secret, and is taken as it stands. */
const shortest = 22;
const hexAndMore = /^([0-9A-Fa-f]{22,})[^0-9A-Fa-f.:|~_+/=-]/;
/** Such as `refresh-token-17`: not base64, and perhaps counted by its last digit. */
const words = /^(?:[A-Za-z]+|\d+)(?:[.:|_-](?:[A-Za-z]+|\d+))*$/;

/**
 * Without the last character where decoders take only some of its bits or none: of base64 beside the last group of four,
 * of hexadecimal beside the last pair. Two random tokens do not differ in it alone.
 */
function withoutLooseEnd(text: string): string {
  if (text.length < shortest) return text;
  const isLoose = /[^0-9A-Fa-f]/.test(text) ? text.length % 4 !== 0 : text.length % 2 === 1;
  return isLoose ? text.slice(0, -1) : text;
}

/** RFC 7519 section 3, as far as it can be seen from outside; other kinds of tokens have three segments too. */
function isJwt(segments: readonly string[]): boolean {
  const [header = '', payload = ''] = segments;
  return segments.length === 3 && payload !== '' && header.startsWith('ey');
}

function recode(segment: string): string {
  return Buffer.from(segment, 'base64').toString('base64url');
}

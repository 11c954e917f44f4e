import type { Mapping } from './envelope.ts';

/** Longest `url` that is asked or stored, in bytes of UTF-8. */
export const maxUrlBytes = 2048;
/** Whether `url` takes at most `maxUrlBytes` in UTF-8. */
export function isShortEnough(url: string): boolean {
  if (url.length > maxUrlBytes) return false;
  return url.length * 3 <= maxUrlBytes || Buffer.byteLength(url) <= maxUrlBytes;
}

/**
 * Builds the strong entity tag (RFC 9110 section 8.8.3) of a document. For one target URI the document's bytes follow from the
 * mapping, the locale (Content-Language) and `salt` (what the configuration puts into every document), so a digest of
 * these tells two documents of one URI apart. 64 bits, not for secrets: nobody gains by a collision with himself.
 */
export function createMappingTag(salt: string): (mapping: Mapping, locale: string) => string {
  const salted = digest(start, `${salt}\0`);
  return ({ entityType, entityId }, locale) => {
    const { a, b } = digest(salted, `${entityType}\0${entityId}\0${locale}`);
    return quote(finish(a), finish(b));
  };
}

export const hashStart = 0x811c9dc5;

/** FNV-1a, one octet or UTF-16 unit: spreads, and keeps no secret. */
export function hashUnit(hash: number, unit: number): number {
  return Math.imul(hash ^ unit, 0x01000193);
}

/** Two 32-bit states. */
interface Digest {
  readonly a: number;
  readonly b: number;
}

const start: Digest = { a: hashStart, b: 0x9747b28c };

function digest(from: Digest, text: string): Digest {
  let { a, b } = from;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    a = hashUnit(a, unit);
    b = Math.imul(b ^ unit, 0x5bd1e995);
    b ^= b >>> 15;
  }
  return { a, b };
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

const digits = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', 'latin1');
const mark = 0x22;

/**
 * 64 bits in 11 digits of base64url. Built in one piece: `toString(36)` takes longer than all the rest, and each of a million
 * entries would keep the pieces of a concatenation.
 */
function quote(a: number, b: number): string {
  return String.fromCharCode(
    mark,
    ...[digit(a), digit(a >>> 6), digit(a >>> 12), digit(a >>> 18), digit(a >>> 24)],
    digit((a >>> 30) | (b << 2)),
    ...[digit(b >>> 4), digit(b >>> 10), digit(b >>> 16), digit(b >>> 22), digit(b >>> 28)],
    mark,
  );
}

function digit(bits: number): number {
  return digits[bits & 63] as number;
}

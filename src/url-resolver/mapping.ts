import type { Mapping } from './envelope.ts';

/** Bytes of UTF-8 of the longest `url` that is looked up or stored. */
export const maxUrlBytes = 2048;
/** Whether `url` has at most `maxUrlBytes` in UTF-8. */
export function isShortEnough(url: string): boolean {
  if (url.length > maxUrlBytes) return false;
  return url.length * 3 <= maxUrlBytes || Buffer.byteLength(url) <= maxUrlBytes;
}

/**
 * Builds the strong entity tag (RFC 9110 section 8.8.3) of a document: a digest of everything that determines its bytes for one
 * target URI, which are the mapping, the locale (Content-Language) and `salt` (what the configuration puts into every document).
 * 64 bits without a key: a client that forces a collision only gets a wrong 304 itself.
 */
export function createMappingTag(salt: string): (mapping: Mapping, locale: string) => string {
  const salted = digest(start, `${salt}\0`);
  return ({ entityType, entityId }, locale) => {
    const { a, b } = digest(salted, `${entityType}\0${entityId}\0${locale}`);
    return quote(finish(a), finish(b));
  };
}

export const hashStart = 0x811c9dc5;

/** One step of FNV-1a, for an octet or a UTF-16 unit. Not cryptographic. */
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
 * 64 bits in 11 digits of base64url, with quotes. Built in one call: `toString(36)` would take longer than all the rest, and a
 * concatenation would keep its parts alive in each of a million entries.
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

import { hash } from 'node:crypto';
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
 * 60 bits: longer texts would be kept in parts, which takes twice the memory.
 */
export function createMappingTag(salt: string): (mapping: Mapping, locale: string) => string {
  return ({ entityType, entityId }, locale) => {
    const text = `${salt}\0${entityType}\0${entityId}\0${locale}`;
    return `"${hash('sha256', text, 'base64url').slice(0, 10)}"`;
  };
}

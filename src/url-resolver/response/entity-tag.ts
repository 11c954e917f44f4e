import type { Mapping } from '../mapping.ts';

/**
 * Strong entity tag (RFC 9110 section 8.8.3) of a document. For one target URI the document's bytes follow from the
 * mapping, the locale (Content-Language) and `salt` (what the configuration puts into every document), so a digest of
 * these tells two documents of one URI apart. 64 bits, not for secrets: nobody gains by a collision with himself.
 */
export function mappingTag(mapping: Mapping, locale: string, salt: string): string {
  const text = `${mapping.entityType}\0${mapping.entityId}\0${locale}\0${salt}`;
  let a = 0x811c9dc5;
  let b = 0x9747b28c;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x5bd1e995);
    b ^= b >>> 15;
  }
  // Joined, it is one string; concatenated, each of a million entries would keep its pieces too.
  return ['"', (finish(a) >>> 0).toString(36), '-', (finish(b) >>> 0).toString(36), '"'].join('');
}

function finish(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

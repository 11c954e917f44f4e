import { parseEntityTags, type TagReading, withoutCoding } from '../http/entity-tag-list.ts';
/** Whether a tag has the form of ours: any other can never be current. */
export function isOwnTag(tag: string): boolean {
  return /^[0-9a-f]{32}$/.test(tag);
}

/** What `If-Match` of a write asks for (RFC 9110 section 13.1.1). */
export type IfMatch =
  | { readonly kind: 'missing' }
  /** Malformed, `*`, weak, or no tag that was ever ours: false whatever is current. */
  | { readonly kind: 'false' }
  /** True if one of these is the current tag. */
  | { readonly kind: 'tags'; readonly tags: readonly string[] };

/**
 * Reads `If-Match`, and `If-None-Match` beside it, of a write. `*` is refused: a change has to say which state it was
 * made for. A tag that `If-None-Match` names too cannot fulfil both.
 */
export function readIfMatch(
  ifMatch: readonly string[],
  ifNoneMatch: readonly string[],
  reading: TagReading,
): IfMatch {
  if (ifMatch.length === 0) return { kind: 'missing' };
  const parsed = parseEntityTags(ifMatch, reading);
  if (parsed === undefined || parsed === '*') return { kind: 'false' };
  const tags = new Set<string>();
  for (const { weak, opaque } of parsed) {
    const tag = reading === 'lenient' ? withoutCoding(opaque) : opaque;
    if ((!weak || reading === 'lenient') && isOwnTag(tag)) tags.add(tag);
  }
  const excluded = ifNoneMatch.length === 0 ? [] : parseEntityTags(ifNoneMatch, reading);
  if (excluded === '*' || excluded === undefined) return { kind: 'false' };
  for (const { opaque } of excluded) tags.delete(opaque);
  return tags.size === 0 ? { kind: 'false' } : { kind: 'tags', tags: [...tags] };
}

import { parseEntityTags, type TagReading } from './entity-tag.ts';
import { isOwnTag } from './random-tag.ts';

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

/**
 * Whether `If-None-Match` of a read names the current tag (weak comparison, RFC 9110 section 13.1.2), that is whether
 * the answer is 304. Malformed: no, the whole answer is never wrong.
 */
export function namesTag(ifNoneMatch: readonly string[], current: string, reading: TagReading): boolean {
  const parsed = ifNoneMatch.length === 0 ? undefined : parseEntityTags(ifNoneMatch, reading);
  if (parsed === undefined) return false;
  if (parsed === '*') return true;
  return parsed.some(
    ({ opaque }) => opaque === current || (reading === 'lenient' && withoutCoding(opaque) === current),
  );
}

/** Apache and others mark the tag of a compressed answer: `"t-gzip"`. */
function withoutCoding(opaque: string): string {
  return opaque.replace(/-{1,2}(?:gzip|br|deflate|zstd)$/, '');
}

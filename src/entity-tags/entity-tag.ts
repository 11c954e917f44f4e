import { meantTag, parseEntityTags, type TagReading } from '../http/entity-tag-list.ts';

/** Whether a tag has the form of ours: any other can never be current. Exported for its tests. */
export function isOwnTag(tag: string): boolean {
  return /^[0-9a-f]{32}$/.test(tag);
}

/**
 * What `If-Match` of a write asks for (RFC 9110 section 13.1.1), with `If-None-Match` beside it: the tags of which one
 * must be current. `never`: malformed, weak, no tag that was ever ours, or one that `If-None-Match` names too; or `*`,
 * since a change has to say which state it was made for.
 */
export function readIfMatch(
  ifMatch: readonly string[],
  ifNoneMatch: readonly string[],
  reading: TagReading,
): 'missing' | 'never' | readonly string[] {
  if (ifMatch.length === 0) return 'missing';
  const wanted = parseEntityTags(ifMatch, reading);
  const excluded = ifNoneMatch.length === 0 ? [] : parseEntityTags(ifNoneMatch, reading);
  if (!Array.isArray(wanted) || !Array.isArray(excluded)) return 'never';
  const strong = wanted.filter(({ weak }) => !weak || reading === 'lenient');
  const tags = new Set(strong.map((tag) => meantTag(tag, reading)).filter(isOwnTag));
  for (const tag of excluded) tags.delete(meantTag(tag, reading));
  return tags.size === 0 ? 'never' : [...tags];
}

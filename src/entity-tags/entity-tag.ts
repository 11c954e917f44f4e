import { meantTag, parseEntityTags, type TagReading } from '../http/entity-tag-list.ts';

const ownLength = 32;

/** Whether a tag has the form of shopward's own tags; no other tag can be current. Exported for its tests. */
export function isOwnTag(tag: string): boolean {
  return tag.length === ownLength && /^[0-9a-f]*$/.test(tag);
}

/**
 * What the `If-Match` of a write requires (RFC 9110 section 13.1.1), together with `If-None-Match`: the tags of which
 * one must be current. `never`: no current tag can match, because the field is malformed, or has only weak tags, tags
 * that are not shopward's, or tags that `If-None-Match` names, too; or it is `*`, since a change has to name the state
 * that it was made for.
 */
export function readIfMatch(
  ifMatch: readonly string[],
  ifNoneMatch: readonly string[],
  reading: TagReading,
): 'missing' | 'never' | readonly string[] {
  if (ifMatch.length === 0) return 'missing';
  const wanted = parseEntityTags(ifMatch, reading);
  if (!Array.isArray(wanted)) return 'never';
  const strong = wanted.filter(({ weak }) => !weak || reading === 'lenient');
  const tags = new Set(strong.map((tag) => meantTag(tag, reading)).filter(isOwnTag));
  // A long list of other tags is not worth the second list.
  if (tags.size === 0) return 'never';
  const excluded = ifNoneMatch.length === 0 ? [] : parseEntityTags(ifNoneMatch, reading);
  if (!Array.isArray(excluded)) return 'never';
  for (const tag of excluded) tags.delete(meantTag(tag, reading));
  return tags.size === 0 ? 'never' : [...tags];
}

import { isOws, trimOws, trimWhile } from './field-list.ts';

/** RFC 9110 section 8.8.3. `opaque` is the text between the quotes, one character per octet. */
interface EntityTag {
  readonly weak: boolean;
  readonly opaque: string;
}

/**
 * How tags are read: `lenient` also takes forms that intermediaries make of a tag: `W/"t"` as strong, `t`, `"t-gzip"`.
 */
export type TagReading = 'strict' | 'lenient';

/**
 * Reads `*` or a list of entity-tags (RFC 9110 sections 5.6.1 and 13.1.1) from all lines of one field. Empty elements are
 * skipped; a comma inside a tag belongs to it; there are no escapes. Undefined for anything else, and for an empty list.
 * Takes any text, of any length, in linear time.
 */
export function parseEntityTags(
  lines: readonly string[],
  reading: TagReading,
): '*' | EntityTag[] | undefined {
  if (lines.length === 1 && trimOws(lines[0] as string) === '*') return '*';
  const tags: EntityTag[] = [];
  for (const line of lines) {
    if (!parseLine(line, reading, tags)) return undefined;
  }
  return tags.length === 0 ? undefined : tags;
}

/**
 * The strong tag of an `ETag` field, without its quotes; null for a weak or malformed one. The result is a copy: a slice
 * would keep the whole head in memory for as long as the tag is stored.
 */
export function parseStrongTag(value: string | undefined): string | null {
  if (value === undefined) return null;
  const tags: EntityTag[] = [];
  if (!parseLine(value, 'strict', tags) || tags.length !== 1) return null;
  const { weak, opaque } = tags[0] as EntityTag;
  return weak ? null : Buffer.from(opaque, 'latin1').toString('latin1');
}

/**
 * One element and the comma after it: a tag (etagc is VCHAR except the quote, or obs-text), or a text without quotes. Such a
 * text has no `*`, so that `*` in a list stays malformed.
 */
const element = /[ \t,]*(?:(W\/)?"([!#-~\x80-\xff]*)"|([!#-)+\--[\]-~\x80-\xff]+))[ \t]*(?:,|$)/y;

function parseLine(line: string, reading: TagReading, tags: EntityTag[]): boolean {
  const list = trimWhile(line, (code) => code === 0x2c || isOws(code));
  for (let at = 0; at < list.length; at = element.lastIndex) {
    element.lastIndex = at;
    const [, weak, quoted, bare = ''] = element.exec(list) ?? [];
    const opaque = quoted ?? (reading === 'lenient' ? bare.replace(/^W\//, '') : '');
    if (quoted === undefined && opaque === '') return false;
    tags.push({ weak: weak !== undefined, opaque });
  }
  return true;
}

/**
 * Whether `If-None-Match` of a read names the current tag (weak comparison, RFC 9110 section 13.1.2), that is whether the
 * answer is 304. False for a malformed field: the full response is always correct.
 */
export function namesTag(ifNoneMatch: readonly string[], current: string, reading: TagReading): boolean {
  // Nearly every request has exactly this one tag, as shopward sent it.
  if (ifNoneMatch.length === 1 && ifNoneMatch[0] === `"${current}"`) return true;
  const parsed = parseEntityTags(ifNoneMatch, reading);
  if (parsed === undefined) return false;
  return parsed === '*' || parsed.some((tag) => meantTag(tag, reading) === current);
}

/**
 * The tag that the client means. Apache and others add `-gzip` to the tag of a compressed response (`"t-gzip"`); tags of
 * tracked resources never end like that.
 */
export function meantTag({ opaque }: EntityTag, reading: TagReading): string {
  // Most tags of a long list have no suffix to remove.
  if (reading === 'strict' || !opaque.includes('-')) return opaque;
  return opaque.replace(/-{1,2}(?:gzip|br|deflate|zstd)$/, '');
}

/** `namesTag` for a `tag` in quotes, which may be weak. Strict, since shopward made the tag. */
export function isNoneMatchMet(lines: readonly string[], tag: string): boolean {
  return namesTag(lines, tag.slice(tag.indexOf('"') + 1, -1), 'strict');
}

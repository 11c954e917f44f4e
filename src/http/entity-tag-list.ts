import { isOws, trimOws } from './field-list.ts';

/** RFC 9110 section 8.8.3. `opaque` is the text between the quotes, one character per octet. */
interface EntityTag {
  readonly weak: boolean;
  readonly opaque: string;
}

/**
 * How tags are read: `lenient` also takes forms that intermediaries make of a tag: `W/"t"` as strong, `t`, `"t-gzip"`.
 */
export type TagReading = 'strict' | 'lenient';

const comma = 0x2c;
const quote = 0x22;

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

function parseLine(line: string, reading: TagReading, tags: EntityTag[]): boolean {
  let at = 0;
  for (;;) {
    at = skip(line, at, isSpaceOrComma);
    if (at === line.length) return true;
    const end = readTag(line, at, reading, tags);
    if (end === -1) return false;
    at = skip(line, end, isOws);
    if (at < line.length && line.charCodeAt(at) !== comma) return false;
  }
}

/** Reads one tag at `at`; returns the index after it, or -1. */
function readTag(line: string, at: number, reading: TagReading, tags: EntityTag[]): number {
  const weak = line.startsWith('W/', at);
  const open = weak ? at + 2 : at;
  if (line.charCodeAt(open) !== quote) return reading === 'lenient' ? readBare(line, open, tags) : -1;
  const close = skip(line, open + 1, isTagCharacter);
  if (line.charCodeAt(close) !== quote) return -1;
  tags.push({ weak, opaque: line.slice(open + 1, close) });
  return close + 1;
}

function readBare(line: string, at: number, tags: EntityTag[]): number {
  const end = skip(line, at, isBareCharacter);
  if (end === at) return -1;
  tags.push({ weak: false, opaque: line.slice(at, end) });
  return end;
}

/**
 * Without the check of the length the result is the same, since no test accepts NaN. But V8 slows a function down for good
 * once it has read beyond the end of a text.
 */
function skip(line: string, from: number, belongs: (code: number) => boolean): number {
  let at = from;
  while (at < line.length && belongs(line.charCodeAt(at))) at += 1;
  return at;
}

function isSpaceOrComma(code: number): boolean {
  return code === comma || isOws(code);
}

/** etagc: VCHAR except the quote, or obs-text. */
function isTagCharacter(code: number): boolean {
  return code > 0x20 && code !== quote && code !== 0x7f && code <= 0xff;
}

/** Characters of an unquoted tag; not `*`, so that `*` in a list stays malformed. */
function isBareCharacter(code: number): boolean {
  return isTagCharacter(code) && code !== comma && code !== 0x2a && code !== 0x5c;
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

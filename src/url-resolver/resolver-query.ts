import type { FieldList } from '../http/field-list.ts';
import { decodeFormText } from '../http/form-encoding.ts';
import { jsonText } from './envelope.ts';
import { hashUnit, isShortEnough } from './mapping.ts';
import { mappingKey } from './partition.ts';

/** What a query says about `url`, and about `_store`. */
interface ResolverQuery {
  /** The decoded value; `missing`: absent, empty or an array; `unusable`: not UTF-8, or over 2 KiB. */
  readonly url: string | typeof missing | typeof unusable;
  /** Decoded value of `_store`; undefined: absent or empty; `unusable`: not UTF-8. */
  readonly store: string | typeof unusable | undefined;
}

export const missing = Symbol('missing');
export const unusable = Symbol('unusable');

const nothing: ResolverQuery = { url: missing, store: undefined };
const plainStart = '?url=';
/** No second parameter, nothing encoded, nothing beyond ASCII: the value stands for itself. */
const plainName = /^[a-z_]{0,64}$/;
const plainValue = /^[\x21-\x24\x27-\x2a\x2c-\x7e]+$/;

/**
 * Reads a raw query (`?` included) as the shop's PHP does: separators are `&` only, names are decoded too (`%75rl`), the
 * last `url` wins, and `url[]` or `url[x]` makes an array of it, which is no URL. Other parameters have no say.
 * Exported for its tests.
 */
export function readResolverQuery(query: string): ResolverQuery {
  if (query.startsWith(plainStart)) {
    const value = query.slice(plainStart.length);
    if (plainValue.test(value)) {
      return { url: isShortEnough(value) ? value : unusable, store: undefined };
    }
  }
  return query.length < 2 ? nothing : readParameters(query);
}

function readParameters(query: string): ResolverQuery {
  let url: ResolverQuery['url'] = missing;
  let store: ResolverQuery['store'];
  for (let start = 1; start <= query.length; ) {
    const separator = query.indexOf('&', start);
    const end = separator < 0 ? query.length : separator;
    const parameter = query.slice(start, end);
    const equals = parameter.indexOf('=');
    const name = readName(equals < 0 ? parameter : parameter.slice(0, equals));
    const value = equals < 0 ? '' : parameter.slice(equals + 1);
    if (name === 'url') url = readUrl(value);
    else if (name === 'url[]') url = missing;
    else if (name === '_store') store = (decodeFormText(value) ?? unusable) || undefined;
    start = end + 1;
  }
  return { url, store };
}

/** First octets of `url`, of `_store`, and of what is dropped in front of them; the rest need not be decoded. */
const mayBegin: ReadonlySet<number> = new Set([
  ...Buffer.from('u_ \t\n\v\f\r'),
  ...['\u00a0', '\u1680', '\u2000', '\u3000', '\ufeff'].map((space) => Buffer.from(space)[0] as number),
]);

function firstOctet(raw: string): number {
  if (raw.startsWith('+')) return 0x20;
  const escaped = /^%([0-9a-f]{2})/i.exec(raw)?.[1];
  return escaped === undefined ? raw.charCodeAt(0) : Number.parseInt(escaped, 16);
}

function readUrl(raw: string): ResolverQuery['url'] {
  if (raw === '') return missing;
  const url = decodeFormText(raw);
  return url !== undefined && isShortEnough(url) ? url : unusable;
}

/** The name as PHP keeps it, as far as it matters: leading spaces dropped, cut at NUL, any array of `url` as `url[]`. */
function readName(raw: string): string {
  if (plainName.test(raw) || raw.length > 64) return raw;
  if (!mayBegin.has(firstOctet(raw))) return '';
  const decoded = decodeFormText(raw);
  if (decoded === undefined) return '';
  const name = (decoded.split('\0', 1)[0] as string).trimStart();
  return name.startsWith('url[') && name.includes(']') ? 'url[]' : name;
}

/** All that is made of a raw query, whoever sends it. */
export interface ReadQuery extends ResolverQuery {
  readonly query: string;
  /** The query as it stands in a JSON string of `links.self`. */
  readonly selfQuery: string;
  /** The key that was last made of it, and for which prefix. */
  keyPrefix: string;
  key: string;
}

const slots = 8192;
const longestRemembered = 256;

/**
 * Reads queries and remembers the last few thousand spellings that came more than once: most requests ask for what others
 * asked a moment ago, and decoding and escaping cost more than the look-up itself. A spelling has one slot, by its mark. What
 * comes once keeps no object, since the collector would pay for it with a walk over the whole cache. Nothing here
 * is ever stale.
 */
export function createQueryReader(): (query: string) => ReadQuery {
  const kept = new Array<ReadQuery | undefined>(slots).fill(undefined);
  const keptMarks = new Uint32Array(slots);
  const seenMarks = new Uint32Array(slots);

  return (query) => {
    const mark = markOf(query);
    const slot = mark % slots;
    if (keptMarks[slot] === mark) {
      const known = kept[slot];
      if (known?.query === query) return known;
    }
    const read = readAll(query);
    if (seenMarks[slot] !== mark) {
      seenMarks[slot] = mark;
    } else if (query.length <= longestRemembered) {
      kept[slot] = read;
      keptMarks[slot] = mark;
    }
    return read;
  };
}

/** Tells queries apart well enough to know one that came before: by their ends, where URLs differ. */
function markOf(query: string): number {
  let mark = query.length;
  for (let i = Math.max(0, query.length - 24); i < query.length; i += 1) {
    mark = hashUnit(mark, query.charCodeAt(i));
  }
  return (mark ^ (mark >>> 15)) >>> 0;
}

/** `mappingKey` of a URL that was read: a string that is used again is not hashed again. */
export function keyOf(read: ReadQuery, prefix: string, url: string): string {
  if (read.keyPrefix !== prefix) {
    read.key = mappingKey(prefix, url);
    read.keyPrefix = prefix;
  }
  return read.key;
}

function readAll(query: string): ReadQuery {
  const { url, store } = readResolverQuery(query);
  return { query, url, store, selfQuery: jsonQuery(query), keyPrefix: '', key: '' };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: octets of a request target, one char each
const everyNotAscii = /[^\x00-\x7f]/g;

/**
 * A raw query, ready to stand in the JSON string of a `links.self`: following the link makes the same request. A raw octet
 * beyond ASCII is written as `%XX`, which is the same octet and may stand in a URL.
 */
function jsonQuery(query: string): string {
  return jsonText(query.replace(everyNotAscii, encodeOctet));
}

function encodeOctet(octet: string): string {
  return `%${octet.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The three request fields that have a say in an answer. */
export interface ResolverFields {
  readonly acceptLanguage: string;
  /** Value of `Store`; several lines are joined as RFC 9110 section 5.3 does, which no known store matches. */
  readonly store: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

/** Picks the three in one pass; nothing else of a request's fields may change an answer. */
export function readResolverFields(fields: FieldList): ResolverFields {
  let acceptLanguage = '';
  let store: string | undefined;
  let ifNoneMatch: string | undefined;
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] as string;
    const value = fields[i + 1] as string;
    // The length tells nearly every other field apart before a letter is folded.
    if (name.length === 5) {
      if (name.toLowerCase() === 'store') store = joined(store, value);
    } else if (name.length === 15) {
      if (name.toLowerCase() === 'accept-language')
        acceptLanguage = joined(acceptLanguage || undefined, value);
    } else if (name.length === 13 && name.toLowerCase() === 'if-none-match') {
      ifNoneMatch = joined(ifNoneMatch, value);
    }
  }
  return { acceptLanguage, store: store || undefined, ifNoneMatch };
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

import { LRUCache } from 'lru-cache';
import { type FieldList, fieldValue, fieldValues } from '../http/field-list.ts';
import { decodeFormText } from '../http/form-encoding.ts';
import { isShortEnough, jsonText } from './envelope.ts';
import { mappingKey } from './partition.ts';

/** The parameters `url` and `_store` of a query. */
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
/** Names and values without anything encoded or beyond ASCII, which need no decoding. */
const plainName = /^[a-z_]{0,64}$/;
const plainValue = /^[\x21-\x24\x27-\x2a\x2c-\x7e]+$/;

/**
 * Reads a raw query (with its `?`) as PHP does at the shop: only `&` separates, names are decoded, too (`%75rl`), the last `url`
 * counts, and `url[]` or `url[x]` makes it an array, which is not a URL. Other parameters are ignored. Exported for its tests.
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

/** A name that begins with another octet is neither `url` nor `_store`, and is not decoded. PHP drops white space in front. */
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

/** Everything that is computed from a raw query: the same for every client. */
export interface ReadQuery extends ResolverQuery {
  readonly query: string;
  /** The query, escaped for the JSON string of `links.self`. */
  readonly selfQuery: string;
  /** The last key that was made for it, and its prefix. */
  keyPrefix: string;
  key: string;
}

const rememberedQueries = 8192;
const longestRemembered = 256;

/**
 * Reads queries, and remembers the last few thousand: most requests repeat recent ones, and decoding and escaping cost more than
 * the look-up itself. Nothing here can become stale.
 */
export function createQueryReader(): (query: string) => ReadQuery {
  const remembered = new LRUCache<string, ReadQuery>({ max: rememberedQueries });
  return (query) => {
    const known = remembered.get(query);
    if (known !== undefined) return known;
    const { url, store } = readResolverQuery(query);
    const read: ReadQuery = { query, url, store, selfQuery: jsonQuery(query), keyPrefix: '', key: '' };
    if (query.length <= longestRemembered) remembered.set(query, read);
    return read;
  };
}

/** Returns `mappingKey(prefix, url)`. The string is kept with the query, because V8 stores its hash in it. */
export function keyOf(read: ReadQuery, prefix: string, url: string): string {
  if (read.keyPrefix !== prefix) {
    read.key = mappingKey(prefix, url);
    read.keyPrefix = prefix;
  }
  return read.key;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: octets of a request target, one char each
const everyNotAscii = /[^\x00-\x7f]/g;

/**
 * A raw query, escaped for the JSON string of `links.self`; following the link makes the same request. Raw octets beyond ASCII
 * are written as `%XX`, since a URL must not have them.
 */
function jsonQuery(query: string): string {
  return jsonText(query.replace(everyNotAscii, encodeOctet));
}

function encodeOctet(octet: string): string {
  return `%${octet.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
}

/** The three request fields on which an answer depends. */
export interface ResolverFields {
  readonly acceptLanguage: string;
  /** Value of `Store`; several lines are joined by a comma (RFC 9110 section 5.3), so that they match no store. */
  readonly store: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export function readResolverFields(fields: FieldList): ResolverFields {
  return {
    acceptLanguage: combined(fields, 'accept-language') ?? '',
    store: combined(fields, 'store') || undefined,
    ifNoneMatch: combined(fields, 'if-none-match'),
  };
}

function combined(fields: FieldList, name: string): string | undefined {
  const first = fieldValue(fields, name);
  return first === undefined ? undefined : fieldValues(fields, name).join(', ');
}

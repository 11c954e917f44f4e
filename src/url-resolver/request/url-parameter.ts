import { decodeFormText } from '../../http/form-encoding.ts';
import { isShortEnough } from '../mapping.ts';

/** What a query says about `url`, and about `_store`. */
export interface ResolverQuery {
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

import { hash } from 'node:crypto';
import Negotiator from 'negotiator';

/** Longest name of a store, also in a mapping file, in UTF-16 code units. */
export const longestStore = 255;

/** The part of the key besides the URL: everything else that the resolved resource may depend on. */
export interface Partition {
  /** One of the configured locales. */
  readonly locale: string;
  /** Value of `Store` or `_store`; empty when the request names none. */
  readonly store: string;
  /** Host of the request if the shop chooses its store by `Host`; else empty. */
  readonly host: string;
  /** Start of every key in this partition. Undefined: the store is not configured, so nothing is cached. */
  readonly prefix: string | undefined;
}

/**
 * Finds the partition of a request (`UrlResolverOptions` describes the parameters). Stores that are not configured are not
 * cached. Hosts are not checked: an invented host only adds a key, as an invented URL does, and the cache bounds the number of
 * keys.
 */
export function createPartitions(
  locales: readonly string[],
  stores: readonly string[],
  storeByHost: boolean,
): (acceptLanguage: string, store: string | undefined, host: string) => Partition {
  const negotiate = createLocaleNegotiation(locales);
  const known = new Set(['', ...stores]);
  return (acceptLanguage, store = '', sentHost) => {
    const locale = negotiate(acceptLanguage);
    const host = storeByHost ? sentHost.toLowerCase() : '';
    // JSON separates the parts, whatever characters they contain.
    const prefix = known.has(store) ? JSON.stringify([locale, store, host]) : undefined;
    return { locale, store, host, prefix };
  };
}

/** Longer values of `Accept-Language` get the default locale: no browser sends them. */
const longestField = 512;
const rememberedFields = 512;

/**
 * Negotiates `Accept-Language` (RFC 9110 section 12.5.4): the result is always one of `locales`, and the default for unknown,
 * absent and overlong values. `de_DE` is read as `de-DE`. Exported for its tests.
 */
export function createLocaleNegotiation(locales: readonly string[]): (acceptLanguage: string) => string {
  const [defaultLocale = ''] = locales;
  // In `Accept-Language`, `*` selects the first.
  const tags = locales.map((locale) => locale.replaceAll('_', '-'));
  const remembered = new Map<string, string>();

  return (acceptLanguage) => {
    if (acceptLanguage === '' || acceptLanguage.length > longestField) return defaultLocale;
    const known = remembered.get(acceptLanguage);
    if (known !== undefined) return known;
    const headers = { 'accept-language': acceptLanguage.replaceAll('_', '-') };
    const [preferred] = new Negotiator({ headers }).languages(tags);
    const locale =
      preferred === undefined ? defaultLocale : (locales[tags.indexOf(preferred)] ?? defaultLocale);
    if (remembered.size >= rememberedFields) remembered.clear();
    remembered.set(acceptLanguage, locale);
    return locale;
  };
}

const longestPlainUrl = 200;

/**
 * The key of a URL in a partition. The prefix is JSON, so that its end is unambiguous; a long URL is replaced by its SHA-256, so
 * that keys stay short.
 */
export function mappingKey(prefix: string, url: string): string {
  return url.length <= longestPlainUrl ? `${prefix}:${url}` : `${prefix}#${hash('sha256', url, 'base64url')}`;
}

import { hash } from 'node:crypto';
import Negotiator from 'negotiator';

/** No shop's store has a longer name, in UTF-16 units; a mapping file takes none either. */
export const longestStore = 255;

/** The part of the key that is not the URL: everything else that may change what a URL leads to. */
export interface Partition {
  /** One of the configured locales. */
  readonly locale: string;
  /** Value of `Store` or `_store`; empty when the request names none. */
  readonly store: string;
  /** Host of the request where the shop chooses its store by it; else empty. */
  readonly host: string;
  /** Distinct for each cacheable partition; undefined: a store or host that is not configured, asked uncached. */
  readonly prefix: string | undefined;
}

interface PartitionOptions {
  readonly locales: readonly string[];
  readonly defaultLocale: string;
  /** Known values of `Store`, `_store` and, with `byHost`, of Host. */
  readonly stores: readonly string[];
  /** The shop is sent the client's Host and chooses its store by it. */
  readonly byHost: boolean;
}

/** Finds the partition of a request. There are as many cacheable ones as the configuration makes, whatever is sent. */
export function createPartitions(
  options: PartitionOptions,
): (acceptLanguage: string, store: string | undefined, host: string) => Partition {
  const negotiate = createLocaleNegotiation(options.locales, options.defaultLocale);
  const stores = new Set(['', ...options.stores]);
  const hosts = new Set(options.byHost ? options.stores.map((store) => store.toLowerCase()) : ['']);
  const cacheable = new Map<string, Map<string, Map<string, Partition>>>();
  for (const locale of new Set([...options.locales, options.defaultLocale])) {
    const ofLocale = new Map<string, Map<string, Partition>>();
    for (const store of stores) {
      const made = [...hosts].map((host): [string, Partition] => {
        // JSON keeps the parts apart whatever characters they hold.
        return [host, { locale, store, host, prefix: JSON.stringify([locale, store, host]) }];
      });
      ofLocale.set(store, new Map(made));
    }
    cacheable.set(locale, ofLocale);
  }

  return (acceptLanguage, sentStore, sentHost) => {
    const locale = negotiate(acceptLanguage);
    const store = sentStore ?? '';
    const host = options.byHost ? sentHost.toLowerCase() : '';
    const known = cacheable.get(locale)?.get(store);
    return known?.get(host) ?? { locale, store, host, prefix: undefined };
  };
}

/** Longer values of `Accept-Language` are not worth the work: no browser sends them. */
const longestField = 512;
const rememberedFields = 512;

/**
 * Builds the negotiation (RFC 9110 section 12.5.4) of an `Accept-Language` value with the configured locales: unknown,
 * absent and overlong values get the default. `de_DE` is read as `de-DE`. The result is one of `locales`, always.
 * Exported for its tests.
 */
export function createLocaleNegotiation(
  locales: readonly string[],
  defaultLocale: string,
): (acceptLanguage: string) => string {
  // The default first: `*` takes the first.
  const ordered = [defaultLocale, ...locales.filter((locale) => locale !== defaultLocale)];
  const tags = ordered.map((locale) => locale.replaceAll('_', '-'));
  const remembered = new Map<string, string>();

  return (acceptLanguage) => {
    if (acceptLanguage === '' || acceptLanguage.length > longestField) return defaultLocale;
    const known = remembered.get(acceptLanguage);
    if (known !== undefined) return known;
    const headers = { 'accept-language': acceptLanguage.replaceAll('_', '-') };
    const [preferred] = new Negotiator({ headers }).languages(tags);
    const locale =
      preferred === undefined ? defaultLocale : (ordered[tags.indexOf(preferred)] ?? defaultLocale);
    if (remembered.size >= rememberedFields) remembered.clear();
    remembered.set(acceptLanguage, locale);
    return locale;
  };
}

const longestPlainUrl = 200;

/**
 * Key of a URL in a partition. The prefix is JSON, so it ends where it says; a long URL is put as its SHA-256, so that
 * a key is never longer than a few hundred characters.
 */
export function mappingKey(prefix: string, url: string): string {
  return url.length <= longestPlainUrl ? `${prefix}:${url}` : `${prefix}#${hash('sha256', url, 'base64url')}`;
}

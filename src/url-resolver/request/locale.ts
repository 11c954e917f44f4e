import Negotiator from 'negotiator';

/** Longer values of `Accept-Language` are not worth the work: no browser sends them. */
const longestField = 512;
const rememberedFields = 512;

/**
 * Builds the negotiation (RFC 9110 section 12.5.4) of an `Accept-Language` value with the configured locales: unknown,
 * absent and overlong values get the default. `de_DE` is read as `de-DE`. The result is one of `locales`, always.
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

import type { Locale } from '../entities.ts';

/** The best of `en` and `de` in Accept-Language; default `en`. */
export function negotiateLocale(acceptLanguage: string | undefined): Locale {
  const ranges = (acceptLanguage ?? '').split(',').map((range) => {
    const [tag = '', ...parameters] = range.trim().toLowerCase().split(';');
    const quality = parameters
      .map((each) => /^\s*q=([0-9.]+)/.exec(each)?.[1])
      .find((each) => each !== undefined);
    return { language: tag.split(/[-_]/)[0], quality: Number(quality ?? 1) };
  });
  const known = ranges.filter(
    ({ language, quality }) => (language === 'en' || language === 'de') && quality > 0,
  );
  const best = known.toSorted((left, right) => right.quality - left.quality)[0];
  return best?.language === 'de' ? 'de' : 'en';
}

export const contentLanguages: Readonly<Record<Locale, string>> = { en: 'en_US', de: 'de_DE' };

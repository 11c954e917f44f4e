import type { FieldList } from '../../http/field-list.ts';

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

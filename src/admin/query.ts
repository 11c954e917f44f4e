/** Parameters of an endpoint, by name. */
export type QueryParameters = Readonly<Record<string, QueryParameter>>;

/** A text: one of `enum` if that is given, of at most `maxLength` characters; or a whole number. */
export type QueryParameter =
  | { readonly type: 'string'; readonly enum?: readonly string[]; readonly maxLength?: number }
  | ReturnType<typeof wholeNumber>;

/** A whole number, at most `maximum`. */
export function wholeNumber(maximum: number = Number.MAX_SAFE_INTEGER) {
  return { type: 'integer', maximum } as const;
}

/** The valid parameters, each given once. */
export type Query = ReadonlyMap<string, string>;

/**
 * Reads the query of an endpoint. A string: what is wrong (an unknown parameter, one given twice, or a bad value). Strict,
 * because an ignored misspelled filter would make all entries look like the result.
 */
export function readQuery(text: string, parameters: QueryParameters): Query | string {
  const found = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name] : undefined;
    if (parameter === undefined) {
      const known = Object.keys(parameters).join(', ');
      return `unknown parameter ${name.slice(0, 50)}; ${known === '' ? 'this endpoint has none' : `known are ${known}`}`;
    }
    if (found.has(name)) return `${name} is given twice`;
    const fault = faultOf(value, parameter);
    if (fault !== undefined) return `${name} ${fault}`;
    found.set(name, value);
  }
  return found;
}

function faultOf(value: string, parameter: QueryParameter): string | undefined {
  if (parameter.type === 'integer') {
    const isFit = /^\d{1,16}$/.test(value) && Number(value) <= parameter.maximum;
    return isFit ? undefined : `must be a whole number, ${parameter.maximum} at most`;
  }
  const { enum: choices, maxLength } = parameter;
  if (choices !== undefined && !choices.includes(value)) return `must be one of ${choices.join(', ')}`;
  if (maxLength !== undefined && value.length > maxLength) return `may have ${maxLength} characters at most`;
  return undefined;
}

/** A search of a long list, and the requested page of the result. */
interface PageQuery {
  /** In lower case; an entry must contain every word. */
  readonly words: readonly string[];
  readonly limit: number;
  readonly offset: number;
}

/** Default number of entries of a page. */
const defaultLimit = 100;
export const maxLimit = 1_000;
/** Characters of a page, which ends before the entry that would exceed it. */
const longestPage = 256 * 1024;
export const longestSearch = 200;
const mostEntries = 999_999_999;

export const pageParameters = {
  /** Words that must all occur. */
  q: { type: 'string', maxLength: longestSearch },
  limit: wholeNumber(mostEntries),
  /** `next` of the previous page. */
  offset: wholeNumber(mostEntries),
} as const satisfies QueryParameters;

export function readPageQuery(query: Query): PageQuery {
  const words = (query.get('q') ?? '')
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const limit = Number(query.get('limit') ?? defaultLimit);
  return { words, limit: Math.min(limit, maxLimit), offset: Number(query.get('offset') ?? 0) };
}

/** Cuts out a page, of at least one entry if one is left. `next`: the offset of the next page, null after the last. */
export function cutPage<Entry>(
  all: readonly Entry[],
  { limit, offset }: PageQuery,
  lengthOf: (entry: Entry) => number,
): { readonly page: readonly Entry[]; readonly next: number | null } {
  const page: Entry[] = [];
  let length = 0;
  for (const entry of all.slice(offset, offset + limit)) {
    length += lengthOf(entry);
    if (length > longestPage && page.length > 0) break;
    page.push(entry);
  }
  const end = offset + page.length;
  return { page, next: page.length > 0 && end < all.length ? end : null };
}

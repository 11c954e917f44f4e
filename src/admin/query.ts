/** Parameters of an endpoint by name: what they may be. */
export type QueryParameters = Readonly<Record<string, QueryParameter>>;

export type QueryParameter = TextParameter | NumberParameter;

interface TextParameter {
  readonly type: 'string';
  /** One of these; else whatever is no longer than `maxLength`. */
  readonly enum?: readonly string[];
  readonly maxLength?: number;
}

type NumberParameter = ReturnType<typeof wholeNumber>;

/** A whole number, `maximum` at most. */
export function wholeNumber(maximum: number = Number.MAX_SAFE_INTEGER) {
  return { type: 'integer', maximum } as const;
}

/** Each parameter as it was given, once, and fit. */
export type Query = ReadonlyMap<string, string>;

/**
 * Reads the query of an endpoint; a string says what is wrong: an unknown parameter, one that is given twice, or a bad value.
 * Strict, since a misspelled filter that was ignored would make all entries look like the result of the search.
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
    return isFit ? undefined : `is a whole number, ${parameter.maximum} at most`;
  }
  const { enum: choices, maxLength } = parameter;
  if (choices !== undefined && !choices.includes(value)) return `is one of ${choices.join(', ')}`;
  if (maxLength !== undefined && value.length > maxLength) return `may have ${maxLength} characters`;
  return undefined;
}

/** A search of a long list, and the page of its result that is wanted. */
export interface PageQuery {
  /** In lower case; an entry has to contain all of them. */
  readonly words: readonly string[];
  readonly limit: number;
  readonly offset: number;
}

/** Entries of a page. */
const defaultLimit = 100;
export const maxLimit = 1_000;
/** Characters of a page, which ends before the entry that would exceed it. */
const longestPage = 256 * 1024;
export const longestSearch = 200;
const mostEntries = 999_999_999;

export const pageParameters = {
  /** Words, each of which has to occur. */
  q: { type: 'string', maxLength: longestSearch },
  limit: wholeNumber(mostEntries),
  /** `next` of the page before. */
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

/** Cuts out a page, of at least one entry where there is one. `next` is the offset of the next page, null after the last. */
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

/** Of a list of 60,000 rows: what is looked for, and which part of it is wanted. */
export interface PageQuery {
  /** Each has to occur. Lower case. */
  readonly words: readonly string[];
  readonly limit: number;
  readonly offset: number;
}

/** Entries of one page: by default, and at most. */
const defaultLimit = 100;
export const maxLimit = 1_000;
/** A page ends before the entry that would make it longer. Characters. */
const longestPage = 256 * 1024;
const longestSearch = 200;

/** `q`, `limit` and `offset` of a query; words for people where they are none. */
export function readPageQuery(query: URLSearchParams): PageQuery | string {
  const q = (query.get('q') ?? '').trim().toLowerCase();
  if (q.length > longestSearch) return `q may have ${longestSearch} characters`;
  const number = (name: string, fallback: number) => {
    const text = query.get(name);
    return text === null ? fallback : /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  };
  const [limit, offset] = [number('limit', defaultLimit), number('offset', 0)];
  if (Number.isNaN(limit) || Number.isNaN(offset)) return 'limit and offset are whole numbers';
  const words = q.split(/\s+/).filter((word) => word !== '');
  return { words, limit: Math.min(limit, maxLimit), offset };
}

/** The entries of a page, at least one where there is one; `next`: where the next one begins, null: there is none. */
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

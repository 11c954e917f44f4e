import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { Activity } from './activity.ts';
import type { JsonEndpoint } from './admin-endpoint.ts';
import { describeCount, type ExchangeCount } from './exchange-count.ts';

interface RowListOptions {
  readonly file: string;
  /** The same array as long as the list is the same. */
  rows(): readonly ProtectedResource[];
  readonly reloads: { readonly lastSuccessMs: number };
  readonly activity: Pick<Activity, 'rows'>;
}

/** Rows of one answer: by default, and at most. A list may have 60,000. */
const defaultLimit = 100;
const maxLimit = 1_000;
/** A page ends before the row that would make it longer. Characters. */
const longestPage = 256 * 1024;
const maxTextLength = 200;

const kinds = ['all', 'met', 'unmet', 'refused', 'observing'] as const;
const orders = ['list', 'met'] as const;

interface RowSearch {
  /** Each has to occur in method, path, group or scopes. Lower case. */
  readonly words: readonly string[];
  readonly kind: (typeof kinds)[number];
  /** As they stand in the list, or those first that met a request. */
  readonly order: (typeof orders)[number];
  readonly limit: number;
  readonly offset: number;
}

type CountOf = (place: number) => ExchangeCount | undefined;

/**
 * `GET /api/rows?q=…&kind=unmet&limit=50&offset=0`: what became of the rows that fit, a page at a time. The list is searched
 * in slices, so that no request waits for it.
 */
export function createRowListEndpoint({ file, rows, reloads, activity }: RowListOptions): JsonEndpoint {
  return {
    method: 'GET',
    path: '/api/rows',
    async run({ query }) {
      const search = readSearch(new URLSearchParams(query));
      if (typeof search === 'string') return { status: 400, body: { error: search } };
      const list = rows();
      const inForceSinceMs = reloads.lastSuccessMs;
      const countOf = await activity.rows.of(list);
      const places = await finishInSlices(findRows(list, countOf, search));
      const page = pageOf(list, countOf, places, search);
      const end = search.offset + page.length;
      const next = end < places.length ? end : null;
      return {
        status: 200,
        body: { file, inForceSinceMs, total: list.length, found: places.length, next, rows: page },
      };
    },
  };
}

function readSearch(query: URLSearchParams): RowSearch | string {
  const q = (query.get('q') ?? '').trim().toLowerCase();
  if (q.length > maxTextLength) return `q may have ${maxTextLength} characters`;
  const kind = kinds.find((one) => one === (query.get('kind') ?? 'all'));
  if (kind === undefined) return `kind is one of ${kinds.join(', ')}`;
  const order = orders.find((one) => one === (query.get('order') ?? 'list'));
  if (order === undefined) return `order is one of ${orders.join(', ')}`;
  const number = (name: string, fallback: number) => {
    const text = query.get(name);
    return text === null ? fallback : /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  };
  const [limit, offset] = [number('limit', defaultLimit), number('offset', 0)];
  if (Number.isNaN(limit) || Number.isNaN(offset)) return 'limit and offset are whole numbers';
  const words = q.split(/\s+/).filter((word) => word !== '');
  return { words, kind, order, limit: Math.min(limit, maxLimit), offset };
}

/** Places of the rows that fit, in their order. */
function* findRows(
  rows: readonly ProtectedResource[],
  countOf: CountOf,
  { words, kind, order }: RowSearch,
): Steps<readonly number[]> {
  const met: number[] = [];
  const unmet: number[] = [];
  for (const [place, row] of rows.entries()) {
    yield;
    const count = countOf(place);
    if (!isKind(row, count, kind)) continue;
    const text = words.length === 0 ? '' : textOf(row);
    if (!words.every((word) => text.includes(word))) continue;
    if (order === 'list' || count !== undefined) met.push(place);
    else unmet.push(place);
  }
  for (const place of unmet) met.push(place);
  return met;
}

function pageOf(
  rows: readonly ProtectedResource[],
  countOf: CountOf,
  places: readonly number[],
  { limit, offset }: RowSearch,
) {
  const page: (ReturnType<typeof describeRow> & ReturnType<typeof describeCount>)[] = [];
  let length = 0;
  for (const place of places.slice(offset, offset + limit)) {
    const row = rows[place];
    if (row === undefined) break;
    length += row.template.length + row.group.length + row.scopes.join(' ').length;
    if (length > longestPage && page.length > 0) break;
    page.push({ ...describeRow(row), ...describeCount(countOf(place)) });
  }
  return page;
}

function isKind(
  { observe }: ProtectedResource,
  count: ExchangeCount | undefined,
  kind: RowSearch['kind'],
): boolean {
  switch (kind) {
    case 'all':
      return true;
    case 'met':
      return count !== undefined;
    case 'unmet':
      return count === undefined;
    case 'refused':
      return count !== undefined && count.refusals.size + count.observed.size > 0;
    case 'observing':
      return observe;
  }
}

function textOf({ method, template, group, scopes }: ProtectedResource): string {
  return `${method} ${template} ${group} ${scopes.join(' ')}`.toLowerCase();
}

function describeRow(row: ProtectedResource) {
  const { method, template, group, scopes, tokenIn, observe, source } = row;
  const id = resourceId(row);
  return { id, method, template, group, scopes, ...(tokenIn && { tokenIn }), observe, line: source.line };
}

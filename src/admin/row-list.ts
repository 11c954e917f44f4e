import { conditionTexts } from '../access/claim-conditions.ts';
import { type ProtectedList, type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';
import { type RowCount, sumRows } from '../telemetry/decision-counts.ts';
import type { AdminEndpoint } from './admin-endpoint.ts';
import { cutPage, pageParameters, type Query, readPageQuery } from './query.ts';
import type { RowCounts } from './row-counts.ts';

type CountedList = Pick<ProtectedList, 'rows' | 'indexesOf'>;

interface RowListOptions {
  readonly file: string;
  list(): CountedList;
  readonly reloads: { readonly lastSuccessMs: number };
  readonly counts: RowCounts;
}

const kinds = ['all', 'met', 'unmet', 'refused', 'observing'] as const;
/** `list`: the order of the list; `met`: rows that matched a request come first. */
const orders = ['list', 'met'] as const;

type RowSearch = ReturnType<typeof readSearch>;

type CountOf = (row: ProtectedResource) => readonly RowCount[];

/**
 * `GET /api/rows?q=…&kind=unmet&limit=50&offset=0`: a page of the rows that match the search, with their counts. The list is
 * searched in slices, so that no request waits for it.
 */
export function createRowListEndpoint(options: RowListOptions): AdminEndpoint {
  const { file, list: current, reloads, counts } = options;
  return {
    method: 'GET',
    path: '/api/rows',
    parameters: {
      ...pageParameters,
      kind: { type: 'string', enum: kinds },
      order: { type: 'string', enum: orders },
    },
    async run({ query }) {
      const search = readSearch(query);
      const list = current();
      const inForceSinceMs = reloads.lastSuccessMs;
      const countOf: CountOf = (row) => counts.countOf(list, row);
      const indexes = await finishInSlices(findRows(list.rows, countOf, search));
      const found = indexes.length;
      const { page, next } = cutPage(indexes, search, (index) => lengthOf(list.rows.at(index)));
      const described = page.flatMap((index) => {
        const row = list.rows.at(index);
        return row === undefined ? [] : [describeRow(row, countOf(row))];
      });
      return {
        status: 200,
        body: { file, inForceSinceMs, total: list.rows.length, found, next, rows: described },
      };
    },
  };
}

/** `words` are looked for in method, path, group and scopes. */
function readSearch(query: Query) {
  const kind = kinds.find((one) => one === query.get('kind')) ?? 'all';
  const order = orders.find((one) => one === query.get('order')) ?? 'list';
  return { ...readPageQuery(query), kind, order };
}

/** Indexes of the matching rows, in the requested order. */
function* findRows(
  rows: CountedList['rows'],
  countOf: CountOf,
  { words, kind, order }: RowSearch,
): Steps<readonly number[]> {
  const met: number[] = [];
  const unmet: number[] = [];
  let index = -1;
  for (const row of rows) {
    yield;
    index += 1;
    const count = countOf(row);
    if (!isKind(row, count, kind)) continue;
    const text = words.length === 0 ? '' : textOf(row);
    if (!words.every((word) => text.includes(word))) continue;
    if (order === 'list' || count.length > 0) met.push(index);
    else unmet.push(index);
  }
  for (const index of unmet) met.push(index);
  return met;
}

function isKind(
  { observe }: ProtectedResource,
  counts: readonly RowCount[],
  kind: RowSearch['kind'],
): boolean {
  switch (kind) {
    case 'all':
      return true;
    case 'met':
      return counts.length > 0;
    case 'unmet':
      return counts.length === 0;
    case 'refused':
      return counts.some(({ reasons }) =>
        [...reasons.values()].some((one) => one.kind === 'refused' || one.kind === 'observed'),
      );
    case 'observing':
      return observe;
  }
}

function textOf({ method, template, group, scopes }: ProtectedResource): string {
  return `${method} ${template} ${group} ${scopes.join(' ')}`.toLowerCase();
}

function lengthOf(row: ProtectedResource | undefined): number {
  return row === undefined ? 0 : textOf(row).length;
}

function describeRow(row: ProtectedResource, counts: readonly RowCount[]) {
  const { method, template, group, scopes, tokenIn, observe, source } = row;
  const conditions = conditionTexts(row);
  const asks = { scopes, ...(conditions.length > 0 && { conditions }), ...(tokenIn && { tokenIn }) };
  const about = { id: resourceId(row), method, template, group, ...asks };
  return { ...about, observe, line: source.line, ...sumRows(counts) };
}

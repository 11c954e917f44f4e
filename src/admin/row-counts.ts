import type { ProtectedResource } from '../access/protected-list.ts';
import { routeKey } from '../access/protected-list-review.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';
import { type ExchangeCount, sumCounts } from './exchange-count.ts';

/** Exported for its tests. */
export type CountedRow = Pick<ProtectedResource, 'method' | 'template'>;

/** Template of the deciding row -> method of the request -> count. */
type RouteCounts = ReadonlyMap<string, ReadonlyMap<string, ExchangeCount>>;

interface Template {
  /** The first row of it. */
  readonly first: number;
  readonly methods: Set<string>;
  /** Of its routes the first row each: all others are met by the same requests. */
  readonly routes: number[];
}

/** What is worked out once of a list, which never changes. */
interface RowIndex {
  readonly templates: ReadonlyMap<string, Template>;
  /** Of each row the first one of its route. */
  readonly first: Uint32Array;
  /** Of the first row of a route how many rows it has. */
  readonly twins: Uint32Array;
}

/**
 * What became of each row. A row has the requests of its own method and template. What came under another method (ANY, or a
 * form POST that may act as PATCH) has no row of its own, and counts for the first row of the template, which decided. Rows
 * of one route, which differ in the names of parameters only, are met by the same requests.
 */
export class RowCounts {
  readonly #routes: RouteCounts;
  readonly #indexes = new WeakMap<readonly CountedRow[], Promise<RowIndex>>();
  /** Of the list that was indexed last, and so the one in force but for a moment after an edit. */
  #last: { readonly rows: readonly CountedRow[]; readonly index: RowIndex } | undefined;

  constructor(routes: RouteCounts) {
    this.#routes = routes;
  }

  /** Counts of a row by its place; undefined for a row that no request ever met. The list may have 60,000: it is read in slices. */
  async of(rows: readonly CountedRow[]): Promise<(place: number) => ExchangeCount | undefined> {
    const index = await this.#indexOf(rows);
    return (place) => this.#countOf(rows, index, place);
  }

  /** Rows that no request has met. Costs as much as there are routes that were met, however long the list is. */
  countUnmet(rows: readonly CountedRow[]): number {
    if (this.#last?.rows !== rows) void this.#indexOf(rows);
    if (this.#last === undefined) return rows.length;
    const { index, rows: known } = this.#last;
    let met = 0;
    for (const template of this.#routes.keys()) {
      for (const place of index.templates.get(template)?.routes ?? []) {
        if (this.#countOf(known, index, place) !== undefined) met += index.twins[place] ?? 0;
      }
    }
    return known.length - met;
  }

  #indexOf(rows: readonly CountedRow[]): Promise<RowIndex> {
    const known = this.#indexes.get(rows);
    if (known !== undefined) return known;
    const reading = finishInSlices(readIndex(rows)).then((index) => {
      this.#last = { rows, index };
      return index;
    });
    this.#indexes.set(rows, reading);
    return reading;
  }

  #countOf(
    rows: readonly CountedRow[],
    { templates, first }: RowIndex,
    place: number,
  ): ExchangeCount | undefined {
    const deciding = first[place] ?? place;
    const row = rows[deciding];
    const counts = row && this.#routes.get(row.template);
    if (row === undefined || counts === undefined) return undefined;
    const template = templates.get(row.template);
    const isFirst = template?.first === deciding;
    const met = [...counts].filter(
      ([method]) => method === row.method || (isFirst && !template.methods.has(method)),
    );
    return met.length < 2 ? met[0]?.[1] : sumCounts(met.map(([, count]) => count));
  }
}

function* readIndex(rows: readonly CountedRow[]): Steps<RowIndex> {
  const templates = new Map<string, Template>();
  const routes = new Map<string, number>();
  const first = new Uint32Array(rows.length);
  const twins = new Uint32Array(rows.length);
  for (const [place, row] of rows.entries()) {
    yield;
    const template = templates.get(row.template) ?? { first: place, methods: new Set(), routes: [] };
    templates.set(row.template, template);
    template.methods.add(row.method);
    const key = routeKey(row);
    const deciding = routes.get(key) ?? place;
    routes.set(key, deciding);
    if (deciding === place) template.routes.push(place);
    first[place] = deciding;
    twins[deciding] = (twins[deciding] ?? 0) + 1;
  }
  return { templates, first, twins };
}

import type { ProtectedResource } from '../access/protected-list.ts';
import { routeKey } from '../access/protected-list.ts';
import { finishInSlices, type Steps } from '../lib/slices.ts';
import type { DecisionCounts, RowCount } from '../telemetry/decision-counts.ts';

/** Exported for its tests. */
export type CountedRow = Pick<ProtectedResource, 'method' | 'template'>;

/** All rows with one template. Rows are named by their index in the list. */
interface Template {
  readonly first: number;
  readonly methods: Set<string>;
  /** The first row of each route: the further rows of a route match the same requests. */
  readonly routes: number[];
}

/** Built once for each list, which is immutable. */
interface RowIndex {
  readonly templates: ReadonlyMap<string, Template>;
  /** Row -> the first row of its route. */
  readonly first: Uint32Array;
  /** First row of a route -> how many rows the route has. */
  readonly twins: Uint32Array;
}

/**
 * Counts the requests of each row: those with its method and template. Requests with a method that no row of the template
 * names (the row is ANY, or a form POST may act as PATCH) count for the template's first row. Rows of one route differ only
 * in the names of parameters, and so match the same requests.
 */
export class RowCounts {
  readonly #decisions: Pick<DecisionCounts, 'templates'>;
  readonly #indexes = new WeakMap<readonly CountedRow[], Promise<RowIndex>>();
  /** Of the list that was indexed last: the one in force, except for a moment after an edit. */
  #last: { readonly rows: readonly CountedRow[]; readonly index: RowIndex } | undefined;

  constructor(decisions: Pick<DecisionCounts, 'templates'>) {
    this.#decisions = decisions;
  }

  /**
   * Gives the counts of a row by its index, none if no request has matched it. Indexing is done in slices, for lists may have
   * 60,000 rows.
   */
  async of(rows: readonly CountedRow[]): Promise<(place: number) => readonly RowCount[]> {
    const index = await this.#indexOf(rows);
    return (place) => this.#countOf(rows, index, place);
  }

  /** Rows that no request has matched. Its cost grows with the routes that requests matched, not with the list. */
  countUnmet(rows: readonly CountedRow[]): number {
    if (this.#last?.rows !== rows) void this.#indexOf(rows);
    if (this.#last === undefined) return rows.length;
    const { index, rows: known } = this.#last;
    let met = 0;
    for (const template of this.#decisions.templates.keys()) {
      for (const place of index.templates.get(template)?.routes ?? []) {
        if (this.#countOf(known, index, place).length > 0) met += index.twins[place] ?? 0;
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

  #countOf(rows: readonly CountedRow[], { templates, first }: RowIndex, place: number): readonly RowCount[] {
    const deciding = first[place] ?? place;
    const row = rows[deciding];
    const counts = row && this.#decisions.templates.get(row.template);
    if (row === undefined || counts === undefined) return [];
    const template = templates.get(row.template);
    const isFirst = template?.first === deciding;
    return [...counts.values()].filter(
      ({ method }) => method === row.method || (isFirst && !template.methods.has(method)),
    );
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

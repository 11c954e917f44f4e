import type { ProtectedList, ProtectedResource } from '../access/protected-list.ts';
import type { DecisionCounts, RowCount } from '../telemetry/decision-counts.ts';

/** The rows are named by their index in the list. */
type CountedList = Pick<ProtectedList, 'indexesOf'> & {
  readonly rows: { readonly length: number; at(index: number): CountedRow | undefined };
};
type CountedRow = Pick<ProtectedResource, 'method' | 'template'>;

/**
 * Counts the requests of each row: those with its method and template. Requests with a method that no row of the template
 * names (the row is ANY, or a form POST may act as PATCH) count for the template's first row. Rows of one route differ only
 * in the names of parameters, and so match the same requests: the first one decides.
 */
export class RowCounts {
  readonly #decisions: Pick<DecisionCounts, 'templates'>;

  constructor(decisions: Pick<DecisionCounts, 'templates'>) {
    this.#decisions = decisions;
  }

  /** The counts of a row; none if no request has matched it. */
  countOf(list: CountedList, index: number, row: CountedRow): readonly RowCount[] {
    // Nearly every row of a long list has no twin and no request.
    if (this.#decisions.templates.size === 0) return [];
    const route = routeOf(list, row.template);
    return this.#countOf(route, route.find(({ method }) => method === row.method) ?? { index, ...row });
  }

  /** Rows that no request has matched. Its cost grows with the routes that requests matched, not with the list. */
  countUnmet(list: CountedList): number {
    let met = 0;
    for (const template of this.#decisions.templates.keys()) {
      const route = routeOf(list, template);
      for (const row of route) {
        const first = route.find(({ method }) => method === row.method);
        if (first?.template === template && this.#countOf(route, first).length > 0) met += 1;
      }
    }
    return list.rows.length - met;
  }

  #countOf(route: readonly IndexedRow[], deciding: IndexedRow): readonly RowCount[] {
    const counts = this.#decisions.templates.get(deciding.template);
    if (counts === undefined) return [];
    const named = route.filter(({ template }) => template === deciding.template);
    const isFirst = named[0]?.index === deciding.index;
    return [...counts.values()].filter(
      ({ method }) => method === deciding.method || (isFirst && !named.some((row) => row.method === method)),
    );
  }
}

type IndexedRow = CountedRow & { readonly index: number };

function routeOf({ rows, indexesOf }: CountedList, template: string): readonly IndexedRow[] {
  return indexesOf(template).flatMap((index) => {
    const row = rows.at(index);
    return row === undefined ? [] : [{ index, method: row.method, template: row.template }];
  });
}

import { type ProtectedList, type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { RowIndex } from '../rollout/observed-rows.ts';
import type { DecisionCounts, RowCount } from '../telemetry/decision-counts.ts';

type CountedRow = Pick<ProtectedResource, 'method' | 'template'>;

type CountedList = Pick<ProtectedList, 'indexesOf'> & {
  readonly rows: { readonly length: number; at(index: number): CountedRow | undefined };
};

/**
 * The counts of each row of the list, by the same rule as in the roll-out report (`RowIndex`). Rows of one route differ only
 * in parameter names and match the same requests: the first row decides, and all of them show its counts.
 */
export class RowCounts {
  readonly #decisions: Pick<DecisionCounts, 'templates'>;

  constructor(decisions: Pick<DecisionCounts, 'templates'>) {
    this.#decisions = decisions;
  }

  /** The counts of a row; empty if no request has matched it. */
  countOf(list: CountedList, row: CountedRow): readonly RowCount[] {
    const { templates } = this.#decisions;
    // Usual for a long list: most of its rows had no request.
    if (templates.size === 0) return [];
    const route = list.indexesOf(row.template).flatMap((index) => list.rows.at(index) ?? []);
    const deciding = route.find(({ method }) => method === row.method) ?? row;
    const counts = templates.get(deciding.template);
    if (counts === undefined) return [];
    const index = new RowIndex();
    for (const one of route) index.add(one);
    const id = resourceId(deciding);
    return [...counts.values()].filter(({ method }) => index.find(method, deciding.template) === id);
  }

  /** Rows that no request has matched. The cost grows with the number of matched routes, not with the list. */
  countUnmet(list: CountedList): number {
    const met = new Set<number>();
    for (const template of this.#decisions.templates.keys()) {
      for (const index of list.indexesOf(template)) {
        const row = list.rows.at(index);
        if (row !== undefined && this.countOf(list, row).length > 0) met.add(index);
      }
    }
    return list.rows.length - met.size;
  }
}

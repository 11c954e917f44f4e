import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { routeKey } from '../access/protected-list-review.ts';
import { type ExchangeCount, sumCounts } from './exchange-count.ts';

export type CountedRow = Pick<ProtectedResource, 'method' | 'template'>;

/** Template of the deciding row -> method of the request -> count. */
export type RouteCounts = ReadonlyMap<string, ReadonlyMap<string, ExchangeCount>>;

/**
 * A row has the requests of its own method and template. What came under another method (ANY, or a form POST that may
 * act as PATCH) has no row of its own, and counts for the first row of the template, which decided. Rows of one route,
 * which differ in the names of parameters only, are met by the same requests.
 */
export function createRowCounts(routes: RouteCounts) {
  const firstOfRoutes = new WeakMap<readonly CountedRow[], readonly number[]>();

  /** For each row the first one of its route; found once for each list, which never changes. */
  const findFirst = (rows: readonly CountedRow[]): readonly number[] => {
    const known = firstOfRoutes.get(rows);
    if (known !== undefined) return known;
    const places = new Map<string, number>();
    const first = rows.map((row, i) => {
      const key = routeKey(row);
      const place = places.get(key) ?? i;
      places.set(key, place);
      return place;
    });
    firstOfRoutes.set(rows, first);
    return first;
  };

  return (rows: readonly CountedRow[]): (ExchangeCount | undefined)[] => {
    // Only rows that were met cost anything, in a list of thousands.
    const isMet = rows.map(({ template }) => routes.has(template));
    const own = new Set(rows.filter((_, i) => isMet[i]).map(resourceId));
    const taken = new Set<string>();
    const counts = rows.map(({ method, template }, i) => {
      if (!isMet[i]) return undefined;
      const isFirst = !taken.has(template);
      taken.add(template);
      const met = [...(routes.get(template) ?? [])].filter(
        ([one]) => one === method || (isFirst && !own.has(`${one} ${template}`)),
      );
      return met.length < 2 ? met[0]?.[1] : sumCounts(met.map(([, count]) => count));
    });
    const first = findFirst(rows);
    return rows.map((_, i) => counts[first[i] ?? i]);
  };
}

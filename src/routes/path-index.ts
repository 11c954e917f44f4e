import type { Method } from '../http/canonical-request.ts';
import type { PathInterpretation } from './path-interpretations.ts';

/** A row also applies to these forms of its path: with one id after its name, or without its version segment. */
export type RowForm = 'item-form' | 'without-version';

/** Kept small, since a list may have 60,000 of them: what only a match needs is read from the template then. */
export interface Row<T> {
  /** Place in the list of rows. */
  readonly index: number;
  readonly method: Method | 'ANY';
  /** The canonical template, or that of a form of it; `{}` is the id of an item form. */
  readonly template: string;
  /** Ends in `**`. */
  readonly rest: boolean;
  /** Undefined: the row as it is written. */
  readonly form: RowForm | undefined;
  /** One resource type, and perhaps an id: matches only where a type stands. */
  readonly isOneType: boolean;
  readonly data: T;
}

/** Called for each row whose route matches an interpretation, with the index of the segment at which the route begins. */
export type Meet<T> = (row: Row<T>, interpretation: PathInterpretation, start: number) => void;

/**
 * Rows by their routes, so that one look-up finds every route that is the end of a path. Rows that differ by method and
 * parameter names only have one route.
 *
 * A route is met as the end of a path, so paths are looked up backwards, and only as many segments as the longest route has
 * are looked at. Routes with `**` have no end; they are looked up forwards, from each position whose segment begins one of
 * them. Segments are compared by their ids (see `SegmentInterner`).
 */
export class PathIndex<T> {
  readonly #roots: Row<T>[] = [];
  readonly #suffixRoutes = new RouteSet<T>('backwards');
  readonly #wildcardRoutes = new RouteSet<T>('forwards');
  readonly #keyOf: (interpretation: PathInterpretation) => readonly string[];
  #isMetByAnything = false;
  /** Those of the rows. */
  readonly methods = new Set<Method | 'ANY'>();

  /** `everyReading`: a row is reported for each different path, not once for all paths that differ in ids alone. */
  constructor(everyReading = false) {
    this.#keyOf = everyReading ? ({ segments }) => segments : ({ ids }) => ids;
  }

  /** Some route has no literal, so any path may match it. */
  get isMetByAnything(): boolean {
    return this.#isMetByAnything;
  }

  /** `ids`: of the literals of the row's template; undefined for a parameter. */
  add(row: Row<T>, ids: readonly (string | undefined)[]): void {
    this.methods.add(row.method);
    this.#isMetByAnything ||= ids.every((id) => id === undefined);
    if (ids.length === 0) this.#roots.push(row);
    else (row.rest ? this.#wildcardRoutes : this.#suffixRoutes).add(row, ids);
  }

  /**
   * Looks up every interpretation. A row may be reported more than once, first for the plain interpretation of the
   * whole path. Without `lastPair` a row matches whole paths only.
   */
  lookUp(interpretations: readonly PathInterpretation[], lastPair: boolean, report: Meet<T>): void {
    // One interpretation has no twin.
    const seen = interpretations.length > 1 ? new SeenPaths() : undefined;
    const meet = lastPair ? report : ofWhole(report);
    let seenPairs: SeenPaths | undefined;
    for (const interpretation of interpretations) {
      for (const row of this.#roots)
        if (row.rest || interpretation.ids.length === 0) meet(row, interpretation, 0);
      // A longer path than any row cannot match whole, and would hide a shorter reading with the same end.
      if (lastPair || interpretation.ids.length <= this.#suffixRoutes.longest)
        this.#meetSuffixes(interpretation, meet, seen);
      this.#meetWildcards(interpretation, meet, seen, lastPair ? Infinity : 1);
      // A path of up to four segments has no pair between its first and its last one.
      if (!lastPair || interpretation.ids.length < 5) continue;
      seenPairs ??= new SeenPaths();
      this.#meetPairs(interpretation, ofWhole(report), seenPairs);
    }
  }

  #meetSuffixes(interpretation: PathInterpretation, meet: Meet<T>, seen: SeenPaths | undefined): void {
    const { ids, steps } = interpretation;
    const count = ids.length;
    // Whether the path ends with a type or with an id decides what is met, too.
    const end = this.#keyOf(interpretation).slice(-this.#suffixRoutes.longest);
    if (seen?.has(`${steps} ${count % 2}:${end.join('/')}`)) return;
    this.#suffixRoutes.find(ids, count - 1, (row, length) => meet(row, interpretation, count - length));
  }

  /** The shop takes the last pair for the resource, and looks for its parent among all pairs before it. */
  #meetPairs(interpretation: PathInterpretation, meet: Meet<T>, seen: SeenPaths): void {
    const { ids, segments, steps } = interpretation;
    const last = ids.length - (ids.length % 2 === 0 ? 2 : 1);
    for (let parent = 0; parent < last - 2; parent += 2) {
      const id = ids[parent];
      if (!this.#suffixRoutes.mayBeginWith(id) && !this.#wildcardRoutes.mayBeginWith(id)) continue;
      const seenOf = (all: readonly string[]) => [...all.slice(parent, parent + 2), ...all.slice(last)];
      const pairs: PathInterpretation = {
        ids: seenOf(ids),
        segments: seenOf(segments),
        steps: [...steps, 'last-pair'],
      };
      this.#meetSuffixes(pairs, meet, seen);
      this.#meetWildcards(pairs, meet, seen, 1);
    }
  }

  #meetWildcards(
    interpretation: PathInterpretation,
    meet: Meet<T>,
    seen: SeenPaths | undefined,
    starts: number,
  ): void {
    const routes = this.#wildcardRoutes;
    if (routes.longest === 0) return;
    const { ids, steps } = interpretation;
    const key = this.#keyOf(interpretation);
    for (let start = 0; start < Math.min(ids.length, starts); start += 1) {
      if (!routes.mayBeginWith(ids[start])) continue;
      // A route cannot start at a trailing id: it would be one type alone, and types are at even positions.
      if (start === ids.length - 1 && !isTypePosition(start)) continue;
      if (seen?.has(`${steps} rest:${key.slice(start, start + routes.longest).join('/')}`)) continue;
      routes.find(ids, start, (row) => meet(row, interpretation, start));
    }
  }
}

/** Called for each row whose route was found, with the number of its segments. */
type Found<T> = (row: Row<T>, length: number) => void;

/**
 * The routes of one direction: a trie in arrays, by the number of the node; the root is 0, and no edge leads to it. An
 * object for each node of a list of 60,000 rows took 100 MB. Exported for its tests.
 */
export class RouteSet<T> {
  /** Segments of the longest route; 0 without routes. */
  longest = 0;
  readonly #step: 1 | -1;
  readonly #rows: (Row<T>[] | undefined)[] = [undefined];
  /** Where a parameter leads; 0: nowhere. */
  readonly #byParameter: number[] = [0];
  /** The first literal of a node, and where it leads. */
  readonly #literal: (string | undefined)[] = [undefined];
  readonly #byLiteral: number[] = [0];
  /** Further literals of a node: few nodes have any. */
  readonly #more = new Map<number, Map<string, number>>();
  /** First ids of the routes; undefined: some route begins with a parameter. */
  readonly #beginnings = new Set<string | undefined>();

  constructor(direction: 'forwards' | 'backwards') {
    this.#step = direction === 'forwards' ? 1 : -1;
  }

  /** `ids` in the order of the path; undefined for a parameter. */
  add(row: Row<T>, ids: readonly (string | undefined)[]): void {
    this.longest = Math.max(this.longest, ids.length);
    this.#beginnings.add(ids[0]);
    let node = 0;
    for (const id of this.#step === 1 ? ids : ids.toReversed())
      node = this.#next(node, id) || this.#grow(node, id);
    const rows = this.#rows[node];
    // A literal: an array that grows by `push` has room for 17.
    if (rows === undefined) this.#rows[node] = [row];
    else rows.push(row);
  }

  /**
   * Calls back with each row whose route begins at `ids[at]`, or is all of what follows. Backwards, a route begins at
   * its end.
   */
  find(ids: readonly string[], at: number, found: Found<T>): void {
    this.#walk(ids, at, found, 0, 0);
  }

  /** Whether some route begins with this id. */
  mayBeginWith(id: string | undefined): boolean {
    return this.#beginnings.has(id) || this.#beginnings.has(undefined);
  }

  #walk(ids: readonly string[], at: number, found: Found<T>, node: number, length: number): void {
    const rows = this.#rows[node];
    if (rows !== undefined) for (const row of rows) found(row, length);
    const id = ids[at];
    if (id === undefined) return;
    const parameter = this.#byParameter[node] as number;
    if (parameter !== 0) this.#walk(ids, at + this.#step, found, parameter, length + 1);
    const literal = this.#next(node, id);
    if (literal !== 0) this.#walk(ids, at + this.#step, found, literal, length + 1);
  }

  /** Where an id leads, or a parameter; 0: nowhere. */
  #next(node: number, id: string | undefined): number {
    if (id === undefined) return this.#byParameter[node] as number;
    if (this.#literal[node] === id) return this.#byLiteral[node] as number;
    return this.#more.get(node)?.get(id) ?? 0;
  }

  #grow(node: number, id: string | undefined): number {
    const next = this.#rows.push(undefined) - 1;
    this.#byParameter.push(0);
    this.#literal.push(undefined);
    this.#byLiteral.push(0);
    if (id === undefined) this.#byParameter[node] = next;
    else if (this.#literal[node] === undefined) {
      this.#literal[node] = id;
      this.#byLiteral[node] = next;
    } else {
      const more = this.#more.get(node) ?? new Map<string, number>();
      this.#more.set(node, more.set(id, next));
    }
    return next;
  }
}

/** Paths are pairs of type and id: `/type/id/type/id`. */
function isTypePosition(index: number): boolean {
  return index % 2 === 0;
}

/** Reports only matches that begin where the interpretation does. */
function ofWhole<T>(meet: Meet<T>): Meet<T> {
  return (row, interpretation, start) => {
    if (start === 0) meet(row, interpretation, start);
  };
}

/** The look-ups that were made for one request. An ordinary path takes one, for which no Set is made. */
class SeenPaths {
  #first: string | undefined;
  #more: Set<string> | undefined;

  /** Whether it was asked for this one before. */
  has(path: string): boolean {
    if (this.#first === undefined) {
      this.#first = path;
      return false;
    }
    if (path === this.#first) return true;
    this.#more ??= new Set();
    if (this.#more.has(path)) return true;
    this.#more.add(path);
    return false;
  }
}

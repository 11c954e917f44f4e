import type { PathInterpretation } from './path-interpretations.ts';

/**
 * A row and the form in which its route is listed, in one number, since a list may have 60,000 rows: the row's index in the
 * upper bits, these flags in the lower ones.
 */
export type RowEntry = number;
/** The row applies without its version segment. */
export const isBare = 1;
/** The row applies with one id after its name. */
export const isItem = 2;
/** One resource type, and perhaps an id: matches only at the position of a type. */
export const isOneType = 4;
/** The row ends in `**`. */
export const isRest = 8;
const flagBits = 4;

export function rowEntry(rowIndex: number, flags: number): RowEntry {
  return (rowIndex << flagBits) | flags;
}

export function rowIndexOf(entry: RowEntry): number {
  return entry >>> flagBits;
}

/** The id of a parameter in a route. */
export const anyId = -1;

/** Called for each row whose route matches an interpretation, with the index of the segment where the route begins. */
export type Meet = (entry: RowEntry, interpretation: PathInterpretation, start: number) => void;

/** A route and its row; `ids` in the order of the path. */
export interface IndexedRoute {
  readonly ids: readonly number[];
  readonly entry: RowEntry;
}

/** All routes of a table, as arrays only, so that processes and threads can exchange it. */
export interface PackedIndex {
  /** Rows without a segment. */
  readonly roots: Int32Array;
  readonly suffixes: PackedRoutes;
  readonly wildcards: PackedRoutes;
}

export function packIndex(routes: readonly IndexedRoute[]): PackedIndex {
  const ofKind = (rest: number) =>
    routes.filter(({ ids, entry }) => ids.length > 0 && (entry & isRest) === rest);
  const roots = routes.filter(({ ids }) => ids.length === 0);
  return {
    roots: Int32Array.from(roots, ({ entry }) => entry),
    suffixes: packRoutes(ofKind(0), 'backwards'),
    wildcards: packRoutes(ofKind(isRest), 'forwards'),
  };
}

/**
 * Rows by their routes, so that one look-up finds every route that is the end of a path. Rows that differ only in method and
 * parameter names have one route.
 * A route matches the end of a path, so paths are looked up backwards, and only for as many segments as the longest route
 * has. Routes with `**` have no fixed end; they are looked up forwards, from each position whose segment begins one of them.
 * Segments are compared by their ids (see `IdOf`).
 */
export class PathIndex {
  readonly #roots: Int32Array;
  readonly #suffixRoutes: RouteSet;
  readonly #wildcardRoutes: RouteSet;

  readonly #keyOf: (interpretation: PathInterpretation) => readonly (string | number)[];

  /** `everyReading`: a row is reported for each different path, not once for all paths with the same `ids`. */
  constructor({ roots, suffixes, wildcards }: PackedIndex, everyReading: boolean) {
    this.#keyOf = everyReading ? ({ segments }) => segments : ({ ids }) => ids;
    this.#roots = roots;
    this.#suffixRoutes = new RouteSet(suffixes, 'backwards');
    this.#wildcardRoutes = new RouteSet(wildcards, 'forwards');
  }

  /**
   * Looks up every interpretation. A row may be reported more than once, first for the plain interpretation of the
   * whole path. Without `lastPair` a row matches whole paths only.
   */
  lookUp(interpretations: readonly PathInterpretation[], lastPair: boolean, report: Meet): void {
    // A single interpretation cannot repeat a look-up.
    const seen = interpretations.length > 1 ? new Set<string>() : undefined;
    const meet = lastPair ? report : ofWhole(report);
    let seenPairs: Set<string> | undefined;
    for (const interpretation of interpretations) {
      for (const row of this.#roots)
        if ((row & isRest) !== 0 || interpretation.ids.length === 0) meet(row, interpretation, 0);
      // A path longer than any row cannot match whole, and would hide a shorter interpretation with the same end.
      if (lastPair || interpretation.ids.length <= this.#suffixRoutes.longest)
        this.#meetSuffixes(interpretation, meet, seen);
      this.#meetWildcards(interpretation, meet, seen, lastPair ? Infinity : 1);
      // A path of up to four segments has no pair between the first and the last one.
      if (!lastPair || interpretation.ids.length < 5) continue;
      seenPairs ??= new Set<string>();
      this.#meetPairs(interpretation, ofWhole(report), seenPairs);
    }
  }

  /** The rows of one route, in the order of the table. */
  rowsOf(ids: readonly number[], rest: number): readonly RowEntry[] {
    if (ids.length === 0) return [...this.#roots].filter((entry) => (entry & isRest) === rest);
    return (rest === 0 ? this.#suffixRoutes : this.#wildcardRoutes).rowsOf(ids);
  }

  #meetSuffixes(interpretation: PathInterpretation, meet: Meet, seen: Set<string> | undefined): void {
    const { ids, steps } = interpretation;
    const count = ids.length;
    // The result also depends on whether the path ends with a type or with an id.
    const end = this.#keyOf(interpretation).slice(-this.#suffixRoutes.longest);
    if (seen && hasSeen(seen, `${steps} ${count % 2}:${end.join('/')}`)) return;
    this.#suffixRoutes.find(ids, count - 1, (row, length) => meet(row, interpretation, count - length));
  }

  /** The shop takes the last pair for the resource, and looks for its parent in all pairs before it. */
  #meetPairs(interpretation: PathInterpretation, meet: Meet, seen: Set<string>): void {
    const { ids, segments, steps } = interpretation;
    const last = ids.length - (ids.length % 2 === 0 ? 2 : 1);
    for (let parent = 0; parent < last - 2; parent += 2) {
      const id = ids[parent];
      if (!this.#suffixRoutes.mayBeginWith(id) && !this.#wildcardRoutes.mayBeginWith(id)) continue;
      const seenOf = <One>(all: readonly One[]) => [...all.slice(parent, parent + 2), ...all.slice(last)];
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
    meet: Meet,
    seen: Set<string> | undefined,
    starts: number,
  ): void {
    const routes = this.#wildcardRoutes;
    if (routes.longest === 0) return;
    const { ids, steps } = interpretation;
    const key = this.#keyOf(interpretation);
    for (let start = 0; start < Math.min(ids.length, starts); start += 1) {
      if (!routes.mayBeginWith(ids[start])) continue;
      // A route cannot start at a trailing id: it would consist of one type, and types are at even positions.
      if (start === ids.length - 1 && start % 2 === 1) continue;
      if (seen && hasSeen(seen, `${steps} rest:${key.slice(start, start + routes.longest).join('/')}`))
        continue;
      routes.find(ids, start, (row) => meet(row, interpretation, start));
    }
  }
}

/**
 * The routes of one direction: a trie in arrays. Its nodes are numbered level by level, so that the children of a node are
 * consecutive, and edge N leads to node N + 1.
 */
interface PackedRoutes {
  /** Node -> its first edge; the extra last entry is the end of all edges. */
  readonly edges: Int32Array;
  /** Edge -> the id of its segment, in ascending order for each node; `anyId` is the lowest. */
  readonly ids: Int32Array;
  /** Node -> the first of its rows; the extra last entry is the end of all rows. */
  readonly rows: Int32Array;
  readonly entries: Int32Array;
  /** First ids of the routes, in ascending order. */
  readonly beginnings: Int32Array;
  /** Segments of the longest route; 0 without routes. */
  readonly longest: number;
}

type Direction = 'forwards' | 'backwards';

function packRoutes(all: readonly IndexedRoute[], direction: Direction): PackedRoutes {
  const routes = all
    .map(({ ids, entry }) => ({ ids: direction === 'forwards' ? ids : ids.toReversed(), entry }))
    .sort(byIds);
  const edges = [0];
  const edgeIds: number[] = [];
  const rows = [0];
  const entries: number[] = [];
  /** The routes below each node. */
  const from = [0];
  const to = [routes.length];
  const depths = [0];
  for (let node = 0; node < from.length; node += 1) {
    let at = from[node] as number;
    const end = to[node] as number;
    const depth = depths[node] as number;
    for (; at < end && routes[at]?.ids.length === depth; at += 1) entries.push(routes[at]?.entry as number);
    rows.push(entries.length);
    while (at < end) {
      const id = routes[at]?.ids[depth] as number;
      from.push(at);
      while (at < end && routes[at]?.ids[depth] === id) at += 1;
      to.push(at);
      depths.push(depth + 1);
      edgeIds.push(id);
    }
    edges.push(edgeIds.length);
  }
  return {
    ...{ edges: Int32Array.from(edges), ids: Int32Array.from(edgeIds) },
    ...{ rows: Int32Array.from(rows), entries: Int32Array.from(entries) },
    beginnings: Int32Array.from(new Set(all.map(({ ids }) => ids[0] as number))).sort(),
    longest: depths.at(-1) as number,
  };
}

/** Shorter routes first. Rows of one route keep their order. */
function byIds({ ids: a }: IndexedRoute, { ids: b }: IndexedRoute): number {
  for (let i = 0; i < a.length && i < b.length; i += 1)
    if (a[i] !== b[i]) return (a[i] as number) - (b[i] as number);
  return a.length - b.length;
}

/** Called for each row whose route was found, with the number of segments in the route. */
type Found = (entry: RowEntry, length: number) => void;

/** Reads packed routes. Exported for its tests. */
export class RouteSet {
  readonly #routes: PackedRoutes;
  readonly #step: 1 | -1;

  constructor(routes: PackedRoutes, direction: Direction) {
    this.#routes = routes;
    this.#step = direction === 'forwards' ? 1 : -1;
  }

  get longest(): number {
    return this.#routes.longest;
  }

  /** Calls back with each row whose route is found from `ids[at]` on: forwards, or backwards from its end. */
  find(ids: readonly number[], at: number, found: Found): void {
    this.#walk(ids, at, found, 0, 0);
  }

  /** The rows whose route is exactly these ids, in the order of the path. */
  rowsOf(ids: readonly number[]): readonly RowEntry[] {
    const { edges, ids: edgeIds, rows, entries } = this.#routes;
    let node = 0;
    for (const id of this.#step === 1 ? ids : ids.toReversed()) {
      const edge = indexIn(edgeIds, id, edges[node] as number, edges[node + 1] as number);
      if (edge < 0) return [];
      node = edge + 1;
    }
    return [...entries.subarray(rows[node], rows[node + 1])];
  }

  /** Whether some route begins with this id. */
  mayBeginWith(id: number | undefined): boolean {
    const { beginnings } = this.#routes;
    if (beginnings[0] === anyId) return true;
    return id !== undefined && indexIn(beginnings, id, 0, beginnings.length) >= 0;
  }

  #walk(ids: readonly number[], at: number, found: Found, node: number, length: number): void {
    const { edges, ids: edgeIds, rows, entries } = this.#routes;
    const end = rows[node + 1] as number;
    for (let row = rows[node] as number; row < end; row += 1) found(entries[row] as number, length);
    const id = ids[at];
    if (id === undefined) return;
    const first = edges[node] as number;
    const last = edges[node + 1] as number;
    if (first === last) return;
    if (edgeIds[first] === anyId) this.#walk(ids, at + this.#step, found, first + 1, length + 1);
    const edge = indexIn(edgeIds, id, first, last);
    if (edge >= 0) this.#walk(ids, at + this.#step, found, edge + 1, length + 1);
  }
}

/** Index of a value in an ascending part of an array; -1: not found. */
function indexIn(values: Int32Array, wanted: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low < to && values[low] === wanted ? low : -1;
}

/** Reports only matches that begin at the start of the interpretation. */
function ofWhole(meet: Meet): Meet {
  return (entry, interpretation, start) => {
    if (start === 0) meet(entry, interpretation, start);
  };
}

/** Whether this look-up was already made; `seen`: the look-ups for one request. */
function hasSeen(seen: Set<string>, path: string): boolean {
  const { size } = seen;
  return seen.add(path).size === size;
}

import { addRoute, createRouter, findAllRoutes } from 'rou3';
import type { Steps } from '../lib/slices.ts';
import type { PathInterpretation } from './path-interpretations.ts';
import type { Route } from './path-routes.ts';

/** Called for each route that matches an interpretation, with the index of the segment at which the route begins. */
export type Meet<T> = (route: Route<T>, interpretation: PathInterpretation, start: number) => void;

/** Fills an index, a step for each route. */
export function* indexRoutes<T>(routes: Iterable<Route<T>>): Steps<PathIndex<T>> {
  const index = new PathIndex<T>();
  for (const route of routes) {
    index.add(route);
    yield;
  }
  return index;
}

/**
 * Routes in the router, so that one look-up finds every route that is the end of a path.
 *
 * A route is met as the end of a path, so paths are looked up backwards: `/carts/{id}` is the router's
 * `/:p/carts/**`, and only as many segments as the longest route has are looked at. Routes with `**` have no end; they
 * are looked up forwards, from each position whose segment begins one of them.
 *
 * The router only ever sees ids (see `SegmentInterner`), none of which has a meaning in its syntax.
 */
export class PathIndex<T> {
  readonly #roots: Route<T>[] = [];
  readonly #suffixRoutes = new RouteSet<T>('backwards');
  readonly #wildcardRoutes = new RouteSet<T>('forwards');
  #isMetByAnything = false;

  /** Some route has no literal, so any path may match it. */
  get isMetByAnything(): boolean {
    return this.#isMetByAnything;
  }

  add(route: Route<T>): void {
    if (route.ids.length === 0) this.#roots.push(route);
    else (route.rest ? this.#wildcardRoutes : this.#suffixRoutes).add(route);
    this.#isMetByAnything ||= route.ids.every((id) => id === undefined);
  }

  /**
   * Looks up every interpretation. A route may be reported more than once, first for the plain interpretation of the
   * whole path. Without `lastPair` a route matches whole paths only.
   */
  lookUp(interpretations: readonly PathInterpretation[], lastPair: boolean, report: Meet<T>): void {
    const seen = new SeenPaths();
    const seenPairs = new SeenPaths();
    const meetWhole = ofWhole(report);
    const meet = lastPair ? report : meetWhole;
    for (const interpretation of interpretations) {
      for (const route of this.#roots)
        if (route.rest || interpretation.ids.length === 0) meet(route, interpretation, 0);
      // A longer path than any route cannot match whole, and would hide a shorter reading with the same end.
      if (lastPair || interpretation.ids.length <= this.#suffixRoutes.longest)
        this.#meetSuffixes(interpretation, meet, seen);
      this.#meetWildcards(interpretation, meet, seen, lastPair ? Infinity : 1);
      if (lastPair) this.#meetPairs(interpretation, meetWhole, seenPairs);
    }
  }

  #meetSuffixes(interpretation: PathInterpretation, meet: Meet<T>, seen: SeenPaths): void {
    const { ids } = interpretation;
    const count = ids.length;
    const { longest, router } = this.#suffixRoutes;
    let path = '';
    for (let i = count - 1; i >= Math.max(0, count - longest); i -= 1) path += `/${ids[i]}`;
    // Whether the path ends with a type or with an id decides what is met, too.
    if (seen.has(`${count % 2}:${path}`)) return;
    for (const { data: route } of findAllRoutes(router, '', path, withoutParams)) {
      meet(route, interpretation, count - route.ids.length);
    }
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
    seen: SeenPaths,
    starts = Infinity,
  ): void {
    const routes = this.#wildcardRoutes;
    if (routes.longest === 0) return;
    const { ids } = interpretation;
    for (let start = 0; start < Math.min(ids.length, starts); start += 1) {
      if (!routes.mayBeginWith(ids[start])) continue;
      // With an id that nothing follows no route begins: it would be one type alone, and no type stands there.
      if (start === ids.length - 1 && !isTypePosition(start)) continue;
      let path = '';
      for (let i = start; i < Math.min(ids.length, start + routes.longest); i += 1) path += `/${ids[i]}`;
      if (seen.has(`rest:${path}`)) continue;
      for (const { data: route } of findAllRoutes(routes.router, '', path, withoutParams)) {
        meet(route, interpretation, start);
      }
    }
  }
}

const withoutParams = { params: false } as const;

/** The routes of one router, and facts that show without a look-up that nothing can match. */
class RouteSet<T> {
  readonly router = createRouter<Route<T>>();
  /** Segments of the longest route; 0 without routes. */
  longest = 0;
  /** First ids of the routes; undefined: some route begins with a parameter. */
  readonly #beginnings = new Set<string | undefined>();
  readonly #direction: 'forwards' | 'backwards';

  constructor(direction: 'forwards' | 'backwards') {
    this.#direction = direction;
  }

  add(route: Route<T>): void {
    const parts = route.ids.map((id, i) => id ?? `:p${i}`);
    if (this.#direction === 'backwards') parts.reverse();
    addRoute(this.router, '', `/${parts.join('/')}/**`, route);
    this.longest = Math.max(this.longest, parts.length);
    this.#beginnings.add(route.ids[0]);
  }

  /** Whether some route begins with this id. */
  mayBeginWith(id: string | undefined): boolean {
    return this.#beginnings.has(id) || this.#beginnings.has(undefined);
  }
}

/** Paths are pairs of type and id: `/type/id/type/id`. */
function isTypePosition(index: number): boolean {
  return index % 2 === 0;
}

/** Reports only matches that begin where the interpretation does. */
function ofWhole<T>(meet: Meet<T>): Meet<T> {
  return (route, interpretation, start) => {
    if (start === 0) meet(route, interpretation, start);
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

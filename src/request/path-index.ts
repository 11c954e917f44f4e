import { addRoute, createRouter, findAllRoutes } from 'rou3';
import type { Steps } from '../event-loop/slices.ts';
import type { PathReading } from './path-reading.ts';
import type { Route } from './path-routes.ts';

/** Called for each route that a reading meets, with the index of the word at which the route begins. */
export type Meet<T> = (route: Route<T>, reading: PathReading, start: number) => void;

/** Routes in the router, so that one look-up finds every route that is the end of a path. */
export interface PathIndex<T> {
  /** Some route has no literal: any path may meet it. */
  readonly isMetByAnything: boolean;
  /** Looks every reading up; a route may be met more than once, by the plain reading of the whole path first. */
  lookUp(readings: readonly PathReading[], meet: Meet<T>): void;
}

/**
 * A route is met as the end of a path, so paths are looked up backwards: `/carts/{id}` is the router's
 * `/:p/carts/**`, and only as many words as the longest route has are looked at. Routes with `**` have no end; they
 * are looked up forwards, from each position whose word begins one of them.
 *
 * The router only ever sees words (see `Vocabulary`), none of which has a meaning in its syntax. A step for each route.
 */
export function* indexRoutes<T>(routes: readonly Route<T>[]): Steps<PathIndex<T>> {
  const roots = routes.filter((route) => route.words.length === 0);
  const ends = yield* side(
    routes.filter((route) => !route.rest && route.words.length > 0),
    'backwards',
  );
  const trees = yield* side(
    routes.filter((route) => route.rest && route.words.length > 0),
    'forwards',
  );

  const isMetByAnything = routes.some((route) => route.words.every((word) => word === undefined));

  function lookUp(readings: readonly PathReading[], meet: Meet<T>): void {
    const seen = new Set<string>();
    const seenPairs = new Set<string>();
    const meetWhole: Meet<T> = (route, reading, start) => {
      if (start === 0) meet(route, reading, start);
    };
    for (const reading of readings) {
      for (const route of roots) if (route.rest || reading.words.length === 0) meet(route, reading, 0);
      meetEnds(reading, meet, seen);
      meetTrees(reading, meet, seen);
      if (reading.words.length > 4) meetPairs(reading, meetWhole, seenPairs);
    }
  }

  function meetEnds(reading: PathReading, meet: Meet<T>, seen: Set<string>): void {
    const { words } = reading;
    const count = words.length;
    if (count === 0 || ends.longest === 0) return;
    let path = '';
    for (let i = count - 1; i >= Math.max(0, count - ends.longest); i -= 1) path += `/${words[i]}`;
    const isType = isTypePosition(count - 1);
    if (isSeen(seen, isType ? path : `id:${path}`)) return;
    for (const { data: route } of findAllRoutes(ends.router, '', path, withoutParams)) {
      if (isType || route.words.length > 1) meet(route, reading, count - route.words.length);
    }
  }

  /** The shop takes the last pair for the resource and looks for its parent among all the pairs before it. */
  function meetPairs(reading: PathReading, meet: Meet<T>, seen: Set<string>): void {
    const { words, origins, segments } = reading;
    const last = words.length - (words.length % 2 === 0 ? 2 : 1);
    for (let parent = 0; parent < last - 2; parent += 2) {
      if (!mayBegin(ends, words[parent]) && !mayBegin(trees, words[parent])) continue;
      const places = [parent, parent + 1, last, ...(last + 1 < words.length ? [last + 1] : [])];
      const pairs = {
        words: places.map((i) => words[i] as string),
        origins: places.map((i) => origins?.[i] ?? i),
        segments,
        isPlain: false,
      };
      // Only a route that begins with them counts: one look-up is then the same for all pairs of the same words.
      if (places.length <= ends.longest) meetEnds(pairs, meet, seen);
      meetTrees(pairs, meet, seen, 1);
    }
  }

  function meetTrees(reading: PathReading, meet: Meet<T>, seen: Set<string>, starts = Infinity): void {
    if (trees.longest === 0) return;
    const { words } = reading;
    for (let start = 0; start < Math.min(words.length, starts); start += 1) {
      if (!mayBegin(trees, words[start])) continue;
      let path = '';
      for (let i = start; i < Math.min(words.length, start + trees.longest); i += 1) path += `/${words[i]}`;
      const isBareId = start === words.length - 1 && !isTypePosition(start);
      if (isSeen(seen, isBareId ? `tree:id:${path}` : `tree:${path}`)) continue;
      for (const { data: route } of findAllRoutes(trees.router, '', path, withoutParams)) {
        if (!isBareId || route.words.length > 1) meet(route, reading, start);
      }
    }
  }

  return { isMetByAnything, lookUp };
}

const withoutParams = { params: false } as const;

/** The routes of one router, and what tells that a look-up is in vain. */
interface Side<T> {
  readonly router: ReturnType<typeof createRouter<Route<T>>>;
  /** Words of the longest route; 0 without routes. */
  readonly longest: number;
  /** First words of the routes; undefined: some route begins with a parameter. */
  readonly beginnings: ReadonlySet<string | undefined>;
}

function* side<T>(routes: readonly Route<T>[], direction: 'forwards' | 'backwards'): Steps<Side<T>> {
  const router = createRouter<Route<T>>();
  let longest = 0;
  for (const route of routes) {
    const parts = route.words.map((word, i) => word ?? `:p${i}`);
    if (direction === 'backwards') parts.reverse();
    addRoute(router, '', `/${parts.join('/')}/**`, route);
    longest = Math.max(longest, parts.length);
    yield;
  }
  return { router, longest, beginnings: new Set(routes.map((route) => route.words[0])) };
}

function mayBegin(routes: Side<unknown>, word: string | undefined): boolean {
  return routes.beginnings.has(word) || routes.beginnings.has(undefined);
}

/** Paths are pairs of type and id: `/type/id/type/id`. */
function isTypePosition(index: number): boolean {
  return index % 2 === 0;
}

function isSeen(seen: Set<string>, key: string): boolean {
  if (seen.has(key)) return true;
  seen.add(key);
  return false;
}

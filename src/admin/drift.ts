import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import type { Log } from '../telemetry/log.ts';

/** A route that matches no row of the list, but that the shop has answered with 401 or 403. */
interface UnlistedRoute {
  readonly method: string;
  /** Guessed from paths: `{id}` replaces segments that look like ids. */
  readonly template: string;
  unauthorized: number;
  forbidden: number;
  /**
   * Requests to this route that the shop has served since. If there are many, the route is open on purpose, and the shop
   * refuses only bad tokens.
   */
  passed: number;
  lastSeenMs: number;
}

/** Where the shop's own protection and the list disagree. */
export interface Drift {
  note(record: ExchangeRecord, nowMs: number): void;
  /** Most refused first. */
  unlisted(): readonly Readonly<UnlistedRoute>[];
}

/** A new route replaces the one with the fewest refusals, so a flood of new paths cannot displace the other routes. */
const maxRoutes = 200;

/**
 * `onNew` is called when a route is added. This function runs for every exchange; most calls end after a few comparisons and
 * one lookup.
 */
export function createDrift(onNew: (route: Readonly<UnlistedRoute>) => void = () => {}): Drift {
  const routes = new Map<string, UnlistedRoute>();
  /** First segments of these routes. A request with another first segment needs no further work. */
  const heads = new Set<string>();

  return {
    note(record, nowMs) {
      if (record.route !== '*' || record.decision !== 'forwarded' || record.method === 'OPTIONS') return;
      const { status, path } = record;
      const isRefused = status === 401 || status === 403;
      if (!isRefused && (heads.size === 0 || !heads.has(headOf(path)))) return;
      const method = record.method === 'HEAD' ? 'GET' : record.method;
      const template = guessTemplate(path);
      const key = `${method} ${template}`;
      let route = routes.get(key);
      const isNew = route === undefined;
      if (route === undefined) {
        if (!isRefused) return;
        if (routes.size >= maxRoutes) forgetLeast(routes, heads);
        route = { method, template, unauthorized: 0, forbidden: 0, passed: 0, lastSeenMs: nowMs };
        routes.set(key, route);
        heads.add(headOf(path));
      }
      if (status === 401) route.unauthorized++;
      else if (status === 403) route.forbidden++;
      else if (status < 400) route.passed++;
      if (isRefused) route.lastSeenMs = nowMs;
      if (isNew) onNew(route);
    },
    unlisted: () => [...routes.values()].sort((a, b) => refusals(b) - refusals(a)),
  };
}

function refusals({ unauthorized, forbidden }: UnlistedRoute): number {
  return unauthorized + forbidden;
}

function forgetLeast(routes: Map<string, UnlistedRoute>, heads: Set<string>): void {
  let least: [string, UnlistedRoute] | undefined;
  for (const entry of routes) {
    if (least === undefined || refusals(entry[1]) < refusals(least[1])) least = entry;
  }
  if (least !== undefined) routes.delete(least[0]);
  heads.clear();
  for (const { template } of routes.values()) heads.add(headOf(template));
}

function headOf(path: string): string {
  const end = path.indexOf('/', 1);
  return end < 0 ? path : path.slice(0, end);
}

/** Logs each route when it is added. */
export function warnOfDrift(log: Log): (route: Readonly<UnlistedRoute>) => void {
  return ({ method, template, unauthorized }) =>
    log.warn(
      { event: 'drift', method, template, status: unauthorized > 0 ? 401 : 403 },
      'the shop refuses a route that no row names',
    );
}

/** Every second segment is an id, as in a JSON:API; others must look like one. Exported for its tests. */
export function guessTemplate(path: string): string {
  const segments = path.split('/').slice(1, 13);
  const guesses = segments.map((segment, i) => (i % 2 === 1 || looksLikeId(segment) ? '{id}' : segment));
  return `/${guesses.join('/')}`;
}

function looksLikeId(segment: string): boolean {
  return segment.length > 48 || /^[\d-]+$|^[0-9a-f-]{20,}$|[%…{}*]/i.test(segment);
}

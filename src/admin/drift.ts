import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** A route that the shop itself refused with 401 or 403, and that no row names. */
interface UnlistedRoute {
  readonly method: string;
  /** A guess from paths: what looks like an id is `{id}`. */
  readonly template: string;
  unauthorized: number;
  forbidden: number;
  /**
   * Requests of it that the shop did answer since. Many: the shop refuses bad tokens there, as it does anywhere, and
   * the route is open on purpose.
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

/** Bound of the routes that are kept; the least refused one makes room, so that nobody can push the others out. */
const maxRoutes = 200;

/**
 * `onNew` hears of each route once, while it is kept. Costs nothing but a comparison while the shop refuses nothing, and a look-up after
 * that.
 */
export function createDrift(onNew: (route: Readonly<UnlistedRoute>) => void = () => {}): Drift {
  const routes = new Map<string, UnlistedRoute>();
  /** First segments of the routes above: most other requests are told apart by theirs. */
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

/**
 * Types and ids alternate in the paths of a JSON:API; elsewhere what looks like an id gives itself away.
 * Exported for its tests.
 */
export function guessTemplate(path: string): string {
  const segments = path.split('/').slice(1, 13);
  const guesses = segments.map((segment, i) => (i % 2 === 1 || looksLikeId(segment) ? '{id}' : segment));
  return `/${guesses.join('/')}`;
}

function looksLikeId(segment: string): boolean {
  return segment.length > 48 || /^[\d-]+$|^[0-9a-f-]{20,}$|[%…{}*]/i.test(segment);
}

import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { routeKey } from '../access/protected-list-review.ts';
import type { RejectionName } from '../http/rejection.ts';
import { rejectionKind } from '../http/rejection-kind.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { UpstreamActivity } from '../upstream/upstream-component.ts';

/** What the proxy did since its start. Counts of rows outlive reloads of the list. */
export interface Activity {
  note(record: ExchangeRecord, nowMs: number): void;
  readonly total: Readonly<ExchangeCount>;
  /** Requests that no row names and shopward does not answer itself. */
  readonly open: Readonly<ExchangeCount>;
  readonly upstream: Readonly<UpstreamActivity>;
  /** Counts of each row, in its order; undefined for a row that no request ever met. */
  countRows(rows: readonly CountedRow[]): (Readonly<ExchangeCount> | undefined)[];
}

/** Twice the longest list that is promised; beyond it new routes are not counted. */
const maxRoutes = 20_000;

/** Cheap by construction: two look-ups and a few additions an exchange, no text is made. */
export function createActivity(): Activity {
  const total = startCount();
  const open = startCount();
  const upstream = new UpstreamActivity();
  const routes = new Map<string, Map<string, ExchangeCount>>();

  const countOf = ({ route, method }: ExchangeRecord): ExchangeCount | undefined => {
    if (route === '*') return open;
    let methods = routes.get(route);
    if (methods === undefined) {
      if (routes.size >= maxRoutes) return undefined;
      methods = new Map();
      routes.set(route, methods);
    }
    const matched = method === 'HEAD' ? 'GET' : method;
    let count = methods.get(matched);
    if (count === undefined) {
      count = startCount();
      methods.set(matched, count);
    }
    return count;
  };

  return {
    total,
    open,
    upstream,
    note(record, nowMs) {
      addExchange(total, record, nowMs);
      const count = countOf(record);
      if (count !== undefined) addExchange(count, record, nowMs);
      upstream.note(record, nowMs);
    },
    countRows: createRowCounts(routes),
  };
}

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

export interface ExchangeCount {
  requests: number;
  /** Enforced refusals, refusals that observe mode only noted, and what broke (no refusal), by their names. */
  readonly refusals: Map<RejectionName, number>;
  readonly observed: Map<RejectionName, number>;
  readonly outages: Map<RejectionName, number>;
  /** Milliseconds since the epoch; 0: never. */
  lastSeenMs: number;
}

export function sumCounts(counts: readonly ExchangeCount[]): ExchangeCount {
  const whole = startCount();
  for (const { requests, refusals, observed, outages, lastSeenMs } of counts) {
    whole.requests += requests;
    whole.lastSeenMs = Math.max(whole.lastSeenMs, lastSeenMs);
    for (const [name, times] of refusals) increase(whole.refusals, name, times);
    for (const [name, times] of observed) increase(whole.observed, name, times);
    for (const [name, times] of outages) increase(whole.outages, name, times);
  }
  return whole;
}

export function startCount(): ExchangeCount {
  return { requests: 0, refusals: new Map(), observed: new Map(), outages: new Map(), lastSeenMs: 0 };
}

export function addExchange(
  count: ExchangeCount,
  { rejection, observed }: ExchangeRecord,
  nowMs: number,
): void {
  count.requests++;
  count.lastSeenMs = nowMs;
  if (rejection !== undefined) {
    const kind = rejectionKind(rejection);
    if (kind === 'refusal') increase(count.refusals, rejection, 1);
    else if (kind === 'outage') increase(count.outages, rejection, 1);
  } else if (observed !== undefined) increase(count.observed, observed, 1);
}

function increase(counts: Map<RejectionName, number>, name: RejectionName, times: number): void {
  counts.set(name, (counts.get(name) ?? 0) + times);
}

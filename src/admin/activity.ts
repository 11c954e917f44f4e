import { type ProtectedResource, resourceId } from '../access/protected-list.ts';
import { routeKey } from '../access/protected-list-review.ts';
import type { RejectionName } from '../http/rejection.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/** What the proxy did since its start. Counts of rows outlive reloads of the list. */
export interface Activity {
  note(record: ExchangeRecord, nowMs: number): void;
  readonly total: Readonly<ExchangeCount>;
  /** Requests that no row names and shopward does not answer itself. */
  readonly open: Readonly<ExchangeCount>;
  readonly timeline: Timeline;
  readonly upstream: Readonly<UpstreamActivity>;
  /** Counts of each row, in its order; undefined for a row that no request ever met. */
  countRows(rows: readonly CountedRow[]): (Readonly<ExchangeCount> | undefined)[];
}

export interface UpstreamActivity {
  answers: number;
  lastAnswerMs: number;
  failures: number;
  lastFailureMs: number;
  lastFailure: RejectionName | undefined;
}

/** Twice the longest list that is promised; beyond it new routes are not counted. */
const maxRoutes = 20_000;

/** Cheap by construction: two look-ups and a few additions an exchange, no text is made. */
export function createActivity(): Activity {
  const total = startCount();
  const open = startCount();
  const timeline = createTimeline();
  const upstream: UpstreamActivity = {
    answers: 0,
    lastAnswerMs: 0,
    failures: 0,
    lastFailureMs: 0,
    lastFailure: undefined,
  };
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
    timeline,
    upstream,
    note(record, nowMs) {
      addExchange(total, record, nowMs);
      const count = countOf(record);
      if (count !== undefined) addExchange(count, record, nowMs);
      timeline.note(record, nowMs);
      if (record.rejection?.startsWith('upstream-')) {
        upstream.failures++;
        upstream.lastFailureMs = nowMs;
        upstream.lastFailure = record.rejection;
      } else if (record.decision === 'forwarded') {
        upstream.answers++;
        upstream.lastAnswerMs = nowMs;
      }
    },
    countRows: createRowCounts(routes),
  };
}

/** Each exchange is one of these: `failed` is a 5xx or a response that broke off, whoever is to blame. */
export const outcomes = ['passed', 'refused', 'observed', 'failed'] as const;
export type Outcome = (typeof outcomes)[number];

/** Counts of the last minutes, in steps of some seconds; the oldest first, the last one still filling. */
export type TimelineReading = { readonly stepMs: number; readonly endMs: number } & Readonly<
  Record<Outcome, readonly number[]>
>;

export interface Timeline {
  note(record: ExchangeRecord, nowMs: number): void;
  read(nowMs: number): TimelineReading;
}

const stepMs = 5_000;
const steps = 60;

/** A ring of five minutes. A clock that is set back only blurs it. */
export function createTimeline(): Timeline {
  const counts = outcomes.map(() => new Uint32Array(steps));
  let current = 0;

  const advance = (nowMs: number): number => {
    const step = Math.floor(nowMs / stepMs);
    if (step > current) {
      for (let past = Math.max(current + 1, step - steps + 1); past <= step; past++) {
        for (const ring of counts) ring[past % steps] = 0;
      }
      current = step;
    }
    return current % steps;
  };

  return {
    note(record, nowMs) {
      const place = advance(nowMs);
      const ring = counts[outcomes.indexOf(outcomeOf(record))];
      if (ring !== undefined) ring[place] = (ring[place] ?? 0) + 1;
    },
    read(nowMs) {
      advance(nowMs);
      const readings = counts.map((ring) =>
        Array.from({ length: steps }, (_, i) => ring[(current + 1 + i) % steps] ?? 0),
      );
      const [passed = [], refused = [], observed = [], failed = []] = readings;
      return { stepMs, endMs: (current + 1) * stepMs, passed, refused, observed, failed };
    },
  };
}

export function outcomeOf({ decision, status, observed }: ExchangeRecord): Outcome {
  if (status >= 500 || (decision === 'aborted' && status !== 0)) return 'failed';
  if (decision === 'refused') return 'refused';
  return observed === undefined ? 'passed' : 'observed';
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
  /** Refused in earnest, and refusals that observe mode only noted, by their names. */
  readonly refusals: Map<RejectionName, number>;
  readonly observed: Map<RejectionName, number>;
  /** Milliseconds since the epoch; 0: never. */
  lastSeenMs: number;
}

export function sumCounts(counts: readonly ExchangeCount[]): ExchangeCount {
  const whole = startCount();
  for (const { requests, refusals, observed, lastSeenMs } of counts) {
    whole.requests += requests;
    whole.lastSeenMs = Math.max(whole.lastSeenMs, lastSeenMs);
    for (const [name, times] of refusals) increase(whole.refusals, name, times);
    for (const [name, times] of observed) increase(whole.observed, name, times);
  }
  return whole;
}

export function startCount(): ExchangeCount {
  return { requests: 0, refusals: new Map(), observed: new Map(), lastSeenMs: 0 };
}

export function addExchange(
  count: ExchangeCount,
  { rejection, observed }: ExchangeRecord,
  nowMs: number,
): void {
  count.requests++;
  count.lastSeenMs = nowMs;
  if (rejection !== undefined) increase(count.refusals, rejection, 1);
  else if (observed !== undefined) increase(count.observed, observed, 1);
}

function increase(counts: Map<RejectionName, number>, name: RejectionName, times: number): void {
  counts.set(name, (counts.get(name) ?? 0) + times);
}

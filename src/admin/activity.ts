import { resourceId } from '../protection/protected-resource.ts';
import type { RejectionName } from '../rejections/table.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { createTimeline, type Timeline } from './timeline.ts';

export interface ExchangeCount {
  requests: number;
  /** Refused in earnest, and refusals that observe mode only noted, by their names. */
  readonly refusals: Map<RejectionName, number>;
  readonly observed: Map<RejectionName, number>;
  /** Milliseconds since the epoch; 0: never. */
  lastSeenMs: number;
}

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

export type CountedRow = Parameters<typeof resourceId>[0];

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
      add(total, record, nowMs);
      const count = countOf(record);
      if (count !== undefined) add(count, record, nowMs);
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
    countRows: (rows) => countRows(rows, routes),
  };
}

/**
 * A row has the requests of its own method and template. What came under another method (ANY, or a form POST that may
 * act as PATCH) has no row of its own, and counts for the first row of the template, which decided.
 */
function countRows(
  rows: readonly CountedRow[],
  routes: ReadonlyMap<string, ReadonlyMap<string, ExchangeCount>>,
): (ExchangeCount | undefined)[] {
  const own = new Set(rows.map(resourceId));
  const taken = new Set<string>();
  return rows.map((row) => {
    const { method, template } = row;
    const isFirst = !taken.has(template);
    taken.add(template);
    // The same row twice is no valid list; the second would have nothing left.
    const met = [...(routes.get(template) ?? [])].filter(
      ([one]) => one === method || (isFirst && !own.has(resourceId({ method: one as 'GET', template }))),
    );
    return met.length < 2 ? met[0]?.[1] : sum(met.map(([, count]) => count));
  });
}

function sum(counts: readonly ExchangeCount[]): ExchangeCount {
  const whole = startCount();
  for (const { requests, refusals, observed, lastSeenMs } of counts) {
    whole.requests += requests;
    whole.lastSeenMs = Math.max(whole.lastSeenMs, lastSeenMs);
    for (const [name, times] of refusals) increase(whole.refusals, name, times);
    for (const [name, times] of observed) increase(whole.observed, name, times);
  }
  return whole;
}

function startCount(): ExchangeCount {
  return { requests: 0, refusals: new Map(), observed: new Map(), lastSeenMs: 0 };
}

function add(count: ExchangeCount, { rejection, observed }: ExchangeRecord, nowMs: number): void {
  count.requests++;
  count.lastSeenMs = nowMs;
  if (rejection !== undefined) increase(count.refusals, rejection, 1);
  else if (observed !== undefined) increase(count.observed, observed, 1);
}

function increase(counts: Map<RejectionName, number>, name: RejectionName, times: number): void {
  counts.set(name, (counts.get(name) ?? 0) + times);
}

import type { RejectionName } from '../http/rejection.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { addExchange, type ExchangeCount, startCount } from './exchange-count.ts';
import { type CountedRow, createRowCounts } from './row-counts.ts';
import { createTimeline, type Timeline } from './timeline.ts';

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

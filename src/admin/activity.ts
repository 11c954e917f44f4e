import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { UpstreamActivity } from '../upstream/upstream-component.ts';
import { addExchange, type ExchangeCount, startCount } from './exchange-count.ts';
import { RowCounts } from './row-counts.ts';

/** What the proxy did since its start. Counts of rows outlive reloads of the list. */
export interface Activity {
  note(record: ExchangeRecord, nowMs: number): void;
  readonly total: Readonly<ExchangeCount>;
  /** Requests that no row names and shopward does not answer itself. */
  readonly open: Readonly<ExchangeCount>;
  readonly upstream: Readonly<UpstreamActivity>;
  readonly rows: Pick<RowCounts, 'of' | 'countUnmet'>;
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
    rows: new RowCounts(routes),
  };
}

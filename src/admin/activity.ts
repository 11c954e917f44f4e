import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { UpstreamActivity } from '../upstream/upstream-component.ts';
import { addExchange, type ExchangeCount, startCount } from './exchange-count.ts';
import { RowCounts } from './row-counts.ts';

/**
 * Twice the longest list that the docs promise to serve; once there are so many, requests of further routes are not
 * counted by row.
 */
const maxRoutes = 20_000;

/**
 * What the proxy did since its start. Counts of rows outlive reloads of the list. On the hot path: two lookups and a few
 * additions for each exchange, and no string is built.
 */
export class Activity {
  readonly total = startCount();
  /** Requests that match no row and that shopward does not answer itself. */
  readonly open = startCount();
  readonly upstream = new UpstreamActivity();
  readonly #routes = new Map<string, Map<string, ExchangeCount>>();
  readonly rows = new RowCounts(this.#routes);

  note(record: ExchangeRecord, nowMs: number): void {
    addExchange(this.total, record, nowMs);
    const count = this.#countOf(record);
    if (count !== undefined) addExchange(count, record, nowMs);
    this.upstream.note(record, nowMs);
  }

  #countOf({ route, method }: ExchangeRecord): ExchangeCount | undefined {
    if (route === '*') return this.open;
    let methods = this.#routes.get(route);
    if (methods === undefined) {
      if (this.#routes.size >= maxRoutes) return undefined;
      methods = new Map();
      this.#routes.set(route, methods);
    }
    const matched = method === 'HEAD' ? 'GET' : method;
    let count = methods.get(matched);
    if (count === undefined) {
      count = startCount();
      methods.set(matched, count);
    }
    return count;
  }
}

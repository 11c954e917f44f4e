import type { RolloutReport, RowReport } from '../rollout/report.ts';
import type { AdminEndpoint } from './admin-endpoint.ts';
import { cutPage, maxLimit, pageParameters, readPageQuery } from './query.ts';

interface RolloutEndpointOptions {
  /** Undefined: `rollout` is false. */
  readonly report: (() => Promise<RolloutReport>) | undefined;
  /** A clock in milliseconds that never goes back. Default: `performance.now`. */
  readonly now?: () => number;
}

/** Largest share of time spent on reports: a report is kept for twenty times as long as it took to make. */
const mostShare = 1 / 20;
/** A report with more rows than one response may have is kept at least this long, so that all its pages match. */
const pagesKeptMs = 10_000;

/** `GET /api/rollout?limit=50&offset=0`: the report on whether it is safe to enforce, with one page of its rows. */
export function createRolloutEndpoint({
  report,
  now = () => performance.now(),
}: RolloutEndpointOptions): AdminEndpoint {
  const current = report && keepReport(report, now);
  const { limit, offset } = pageParameters;
  return {
    method: 'GET',
    path: '/api/rollout',
    parameters: { limit, offset },
    async run({ query }) {
      if (current === undefined) return { status: 404, body: { error: 'rollout is false' } };
      const whole = await current();
      const { page, next } = cutPage(whole.rows, readPageQuery(query), lengthOf);
      return { status: 200, body: { ...whole, found: whole.rows.length, next, rows: page } };
    },
  };
}

/** Makes one report for all concurrent requests, and returns it until `keptUntilMs`. */
function keepReport(make: () => Promise<RolloutReport>, now: () => number): () => Promise<RolloutReport> {
  let kept: Promise<RolloutReport> | undefined;
  /** Infinity while a report is being made: all requests wait for it. */
  let keptUntilMs = Number.POSITIVE_INFINITY;
  let forgetting: NodeJS.Timeout | undefined;
  const forget = () => {
    kept = undefined;
  };
  const makeNew = async (): Promise<RolloutReport> => {
    clearTimeout(forgetting);
    keptUntilMs = Number.POSITIVE_INFINITY;
    const beganMs = now();
    try {
      const report = await make();
      const isPaged = report.rows.length > maxLimit;
      const keptMs = Math.max((now() - beganMs) / mostShare, isPaged ? pagesKeptMs : 0);
      keptUntilMs = now() + keptMs;
      // The report of a long list takes much memory: drop it even if no further request comes.
      forgetting = setTimeout(forget, keptMs).unref();
      return report;
    } catch (fault) {
      forget();
      throw fault;
    }
  };
  return () => {
    if (kept === undefined || now() >= keptUntilMs) kept = makeNew();
    return kept;
  };
}

/** Estimated characters of a row in the response: its name, and about a thousand for each reason. */
function lengthOf({ row, reasons }: RowReport): number {
  return row.length + 1_000 * reasons.length;
}

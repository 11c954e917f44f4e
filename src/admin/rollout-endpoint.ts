import type { RolloutReport, RowReport } from '../rollout/report.ts';
import type { AdminEndpoint } from './admin-endpoint.ts';
import { cutPage, maxLimit, pageParameters, readPageQuery } from './query.ts';

/** How long a report of several pages is kept, so that its pages match. */
const pagesKeptMs = 10_000;

/**
 * `GET /api/rollout?limit=50&offset=0`: the report on whether it is safe to enforce, with one page of its rows. `report` is
 * undefined if `rollout` is false.
 */
export function createRolloutEndpoint(report: (() => Promise<RolloutReport>) | undefined): AdminEndpoint {
  const current = report && keepReport(report);
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

/** Makes one report for all concurrent requests. */
function keepReport(make: () => Promise<RolloutReport>): () => Promise<RolloutReport> {
  let kept: Promise<RolloutReport> | undefined;
  const forget = () => {
    kept = undefined;
  };
  const makeNew = async (): Promise<RolloutReport> => {
    try {
      const report = await make();
      if (report.rows.length > maxLimit) setTimeout(forget, pagesKeptMs).unref();
      else forget();
      return report;
    } catch (fault) {
      forget();
      throw fault;
    }
  };
  return () => (kept ??= makeNew());
}

/** Estimated characters of a row in the response: its name, and about a thousand for each reason. */
function lengthOf({ row, reasons }: RowReport): number {
  return row.length + 1_000 * reasons.length;
}

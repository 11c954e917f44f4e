import { finishInSlices, type Steps } from '../lib/slices.ts';
import { type RolloutReport, type RowReport, type Verdict, verdicts } from '../rollout/report.ts';
import type { AdminEndpoint } from './admin-endpoint.ts';
import { cutPage, maxLimit, pageParameters, readPageQuery } from './query.ts';

interface RolloutEndpointOptions {
  /** Undefined: `rollout` is false. */
  readonly report: (() => Promise<RolloutReport>) | undefined;
  /** A clock in milliseconds that never goes back. Default: `performance.now`. */
  readonly now?: () => number;
}

/** Making reports takes at most this share of the process's time: a report is kept for twenty times as long as it took. */
const mostShare = 1 / 20;
/** A report of several pages is kept at least so long, so that its pages are of one report. */
const pagesKeptMs = 10_000;
/** Rows with the same verdict and text are one group; so many groups, and so many rows of each, are reported. */
const mostGroups = 30;
const mostNamed = 50;
const longestName = 200;

/** Rows with the same verdict and, unless `text` is empty, the same text. */
interface RowGroup {
  readonly verdict: Verdict;
  /** Empty where the texts differ. */
  readonly text: string;
  rows: number;
  readonly named: { readonly row: string; readonly text: string }[];
}

/**
 * `GET /api/rollout?verdict=refuses&limit=50&offset=0`: whether it is safe to enforce. The report as a whole, the number of
 * rows of each verdict, groups of rows that say the same, and a page of rows. Made in slices, so that no request waits for it.
 */
export function createRolloutEndpoint({
  report,
  now = () => performance.now(),
}: RolloutEndpointOptions): AdminEndpoint {
  const current = report && keepReport(report, now);
  return {
    method: 'GET',
    path: '/api/rollout',
    parameters: {
      ...pageParameters,
      verdict: { type: 'string', enum: verdicts },
    },
    async run({ query }) {
      if (current === undefined) return { status: 404, body: { error: 'rollout is false' } };
      const wanted = readPageQuery(query);
      const verdict = verdicts.find((one) => one === query.get('verdict'));
      const { report: whole, ...summary } = await current();
      const found = await finishInSlices(findRows(whole.rows, wanted.words, verdict));
      const { page, next } = cutPage(found, wanted, lengthOf);
      return { status: 200, body: { ...whole, ...summary, found: found.length, next, rows: page } };
    },
  };
}

interface Summarised {
  readonly report: RolloutReport;
  /** Rows of the report by verdict; it leaves out enforced rows that refused nobody. */
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly groups: readonly RowGroup[];
}

/** Makes one report for all who ask at once, and gives it out until `keptUntilMs`. */
function keepReport(make: () => Promise<RolloutReport>, now: () => number): () => Promise<Summarised> {
  let kept: Promise<Summarised> | undefined;
  /** Infinity while a report is being made: everybody waits for that one. */
  let keptUntilMs = Number.POSITIVE_INFINITY;
  let forgetting: NodeJS.Timeout | undefined;
  const forget = () => {
    kept = undefined;
  };
  const makeNew = async (): Promise<Summarised> => {
    clearTimeout(forgetting);
    keptUntilMs = Number.POSITIVE_INFINITY;
    const beganMs = now();
    try {
      const summarised = await finishInSlices(summarise(await make()));
      const isPaged = summarised.report.rows.length > maxLimit;
      const keptMs = Math.max((now() - beganMs) / mostShare, isPaged ? pagesKeptMs : 0);
      keptUntilMs = now() + keptMs;
      // The report of a long list takes much memory: drop it even when nobody asks again.
      forgetting = setTimeout(forget, keptMs).unref();
      return summarised;
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

function* summarise(report: RolloutReport): Steps<Summarised> {
  const counts = Object.fromEntries(verdicts.map((verdict) => [verdict, 0])) as Record<Verdict, number>;
  const groups = new Map<string, RowGroup>();
  for (const { row, verdict, text, reasons } of report.rows) {
    yield;
    counts[verdict]++;
    // The console shows each of these rows by itself.
    if (verdict === 'refuses' && reasons.some(({ kind }) => kind === 'observed')) continue;
    const said = verdict === 'safe' ? '' : text;
    const own = `${verdict} ${said}`;
    // Once there are `mostGroups`, rows with a new text are grouped by their verdict alone.
    const isOwn = groups.has(own) || groups.size < mostGroups;
    const key = isOwn ? own : `${verdict} `;
    const group = groups.get(key) ?? { verdict, text: isOwn ? said : '', rows: 0, named: [] };
    groups.set(key, group);
    group.rows++;
    if (group.named.length < mostNamed) group.named.push({ row: row.slice(0, longestName), text });
  }
  return { report, verdicts: counts, groups: [...groups.values()] };
}

function* findRows(
  rows: readonly RowReport[],
  words: readonly string[],
  verdict: Verdict | undefined,
): Steps<readonly RowReport[]> {
  const found: RowReport[] = [];
  for (const one of rows) {
    yield;
    if (verdict !== undefined && one.verdict !== verdict) continue;
    const text = one.row.toLowerCase();
    if (words.every((word) => text.includes(word))) found.push(one);
  }
  return found;
}

/** Characters of a row in the response, estimated: its name, and about a thousand for each reason. */
function lengthOf({ row, reasons }: RowReport): number {
  return row.length + 1_000 * reasons.length;
}

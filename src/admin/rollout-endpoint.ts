import { finishInSlices, type Steps } from '../lib/slices.ts';
import { type RolloutReport, type RowReport, type Verdict, verdicts } from '../rollout/report.ts';
import type { JsonEndpoint } from './admin-endpoint.ts';
import { cutPage, maxLimit, readPageQuery } from './page-query.ts';

interface RolloutEndpointOptions {
  /** Undefined: `rollout` is false. */
  readonly report: (() => Promise<RolloutReport>) | undefined;
  /** Milliseconds, from anywhere. Default: those since the start of the process. */
  readonly now?: () => number;
}

/** A report costs no more than this share of the time; and whoever turns its pages has all of one and the same. */
const mostShare = 1 / 20;
const pagesKeptMs = 10_000;
/** Rows that have the same to say are one group; so many groups, and so many rows of each, are named. */
const mostGroups = 30;
const mostNamed = 50;
const longestName = 200;

/** Rows of which the same is said. */
interface RowGroup {
  readonly verdict: Verdict;
  /** What is said of each; empty where they differ. */
  readonly text: string;
  rows: number;
  readonly named: { readonly row: string; readonly text: string }[];
}

/**
 * `GET /api/rollout?verdict=refuses&limit=50&offset=0`: whether it is safe to enforce. The report as a whole, how many rows have
 * which verdict and say the same, and a page of the rows themselves. It is made in slices, so that no request waits for it.
 */
export function createRolloutEndpoint({
  report,
  now = () => performance.now(),
}: RolloutEndpointOptions): JsonEndpoint {
  const current = report && keepReport(report, now);
  return {
    method: 'GET',
    path: '/api/rollout',
    async run({ query }) {
      if (current === undefined) return { status: 404, body: { error: 'rollout is false' } };
      const search = new URLSearchParams(query);
      const wanted = readPageQuery(search);
      if (typeof wanted === 'string') return { status: 400, body: { error: wanted } };
      const verdict = verdicts.find((one) => one === search.get('verdict'));
      if (search.has('verdict') && verdict === undefined) {
        return { status: 400, body: { error: `verdict is one of ${verdicts.join(', ')}` } };
      }
      const { report: whole, ...summary } = await current();
      const found = await finishInSlices(findRows(whole.rows, wanted.words, verdict));
      const { page, next } = cutPage(found, wanted, lengthOf);
      return { status: 200, body: { ...whole, ...summary, found: found.length, next, rows: page } };
    },
  };
}

interface Summarised {
  readonly report: RolloutReport;
  /** Rows by verdict; those that are enforced and refused nobody are not among them. */
  readonly verdicts: Readonly<Record<Verdict, number>>;
  readonly groups: readonly RowGroup[];
}

/** One report for all who ask at once, and for as long as it is new enough. */
function keepReport(make: () => Promise<RolloutReport>, now: () => number): () => Promise<Summarised> {
  let kept: Promise<Summarised> | undefined;
  /** While one is being made it is the newest there is. */
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
      // Of a long list it is too long to be kept for nobody.
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
    // Each of them has a card of its own.
    if (verdict === 'refuses' && reasons.some(({ kind }) => kind === 'observed')) continue;
    const said = verdict === 'safe' ? '' : text;
    const own = `${verdict} ${said}`;
    // Those that are too many to be told apart by what they say are so by their verdict.
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

/** Characters, as far as they grow without a bound: the name, and what is said of each reason. */
function lengthOf({ row, reasons }: RowReport): number {
  return row.length + 1_000 * reasons.length;
}

import { resourceId } from '../access/protected-list.ts';
import type { RejectionName } from '../http/rejection.ts';
import type { Steps } from '../lib/slices.ts';
import { dayMs } from '../telemetry/decision-counts.ts';
import { type Counting, type MetRow, type RolloutEntry, safeAfterMs } from './counts.ts';
import { type ListedRow, noRow, RowIndex } from './observed-rows.ts';
import { adviceOn, type Cause } from './reasons.ts';

/** If a row's first request comes within this time after counting began, the row counts as observed from the beginning. */
const atStartMs = 60_000;

/**
 * `enforced`: its refusals are enforced; `refuses`: enforcing it would refuse requests; `safe`: it had requests in the last
 * seven days, and would have refused none; `not-known`: none so far, but the counts do not yet cover seven days without a
 * gap; `not-asked`: none, but it had no request either.
 */
export type Verdict = 'enforced' | 'refuses' | 'not-known' | 'not-asked' | 'safe';

export interface RowReport {
  /** `GET /carts/{id}`; `*`: requests that match no row. */
  readonly row: string;
  readonly verdict: Verdict;
  /** The verdict in a sentence. */
  readonly text: string;
  /** Requests that would have been refused, and requests that were, within the time for which counts are kept. */
  readonly wouldBeRefused: number;
  readonly refused: number;
  /** Requests that met the row since it began to observe with its current rule; null: it is enforced. */
  readonly asked: number | null;
  readonly reasons: readonly ReasonReport[];
}

export interface ReasonReport {
  readonly kind: 'observed' | 'refused';
  readonly method: string;
  readonly rejection: RejectionName;
  /** Detail of the rejection, such as `expired`. */
  readonly reason: string | undefined;
  readonly requests: number;
  /** Clients that are counted separately; `areMore`: there are others. The ones with the most requests are named. */
  readonly clients: {
    readonly count: number;
    readonly areMore: boolean;
    readonly named: readonly NamedClient[];
  };
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  /** Requests of the last seven days, the oldest first. */
  readonly days: readonly number[];
  /** What must change, how, and the page of the docs. */
  readonly cause: Cause;
  readonly next: string;
  readonly more: string;
}

interface NamedClient {
  /** `client_id`, `azp` or `cid` of its tokens; empty: they have none of these claims. */
  readonly application: string;
  readonly userAgent: string;
  readonly requests: number;
}

export interface RolloutReport extends Pick<Counting, 'wholeSinceMs' | 'why' | 'problems'> {
  readonly nowMs: number;
  readonly verdict: Verdict;
  readonly text: string;
  /** Requests that would be refused, by what has to change. */
  readonly causes: Readonly<Record<Cause, number>>;
  readonly rows: readonly RowReport[];
}

/** Clients that are named for each reason. */
const mostNamed = 5;

/** Reports on rows that observe or have refused a request, worst verdict first; in steps, since a list may have 60,000 rows. */
export function* makeReport(
  counting: Counting,
  rows: Iterable<Omit<ListedRow, 'scopes'>>,
  isObserving: boolean,
  nowMs: number,
): Steps<RolloutReport> {
  const index = new RowIndex();
  const isObserved = new Map<string, boolean>();
  for (const row of rows) {
    yield;
    index.add(row);
    isObserved.set(resourceId(row), isObserving || row.observe);
  }
  const entriesOf = Map.groupBy(
    counting.entries,
    ({ method, route }) => index.find(method, route) ?? `${method} ${route}`,
  );
  if (isObserving) isObserved.set(noRow, true);
  const unlisted = new Set([...entriesOf.keys()].filter((row) => !isObserved.has(row)));
  for (const row of unlisted) isObserved.set(row, false);
  const reports: Record<Verdict, RowReport[]> = {
    refuses: [],
    'not-known': [],
    'not-asked': [],
    safe: [],
    enforced: [],
  };
  for (const [row, isNow] of isObserved) {
    yield;
    const state = { isListed: !unlisted.has(row), isObserved: isNow };
    const report = reportRow(row, state, entriesOf.get(row) ?? [], counting, nowMs);
    if (report.verdict === 'enforced' && report.reasons.length === 0) continue;
    reports[report.verdict].push(report);
  }
  reports.refuses.sort((a, b) => b.wouldBeRefused - a.wouldBeRefused);
  const { wholeSinceMs, why, problems } = counting;
  return {
    nowMs,
    ...summarise(reports),
    ...{ wholeSinceMs, why, problems },
    causes: sumCauses(reports.refuses),
    rows: verdicts.flatMap((verdict) => reports[verdict]),
  };
}

/** All verdicts, the worst first. */
const verdicts: readonly Verdict[] = ['refuses', 'not-known', 'not-asked', 'safe', 'enforced'];

function reportRow(
  row: string,
  { isListed, isObserved }: { readonly isListed: boolean; readonly isObserved: boolean },
  entries: readonly RolloutEntry[],
  counting: Counting,
  nowMs: number,
): RowReport {
  const sum = (kind: RolloutEntry['kind']) =>
    entries.reduce((total, entry) => total + (entry.kind === kind ? entry.requests : 0), 0);
  const met = counting.rows[row];
  const counts = {
    wouldBeRefused: sum('observed'),
    refused: sum('refused'),
    asked: isObserved ? (met?.requests ?? 0) : null,
  };
  const reasons = entries.map((entry) => reportReason(entry, nowMs));
  if (!isObserved) {
    const past = `${requests(counts.refused)} refused`;
    const text =
      counts.wouldBeRefused > 0
        ? `${isListed ? 'enforced now' : 'the list has no such row any more'}: ${past}, ${counts.wouldBeRefused} would have been refused before`
        : `enforced: ${past}`;
    return { row, verdict: 'enforced', text, ...counts, reasons };
  }
  // Refusals from before the last change of the row say nothing about the row as it is now.
  const fromMs = Math.max(nowMs - safeAfterMs, met?.sinceMs ?? Number.POSITIVE_INFINITY);
  const recent = entries.filter(({ kind, lastSeenMs }) => kind === 'observed' && lastSeenMs >= fromMs);
  if (recent.length > 0) {
    const many = recent.reduce((total, entry) => total + entry.requests, 0);
    const text = `not safe: ${requests(many)} would have been refused, the last ${toText(lastOf(recent))}`;
    return { row, verdict: 'refuses', text, ...counts, reasons };
  }
  return { row, ...assessSilence(counting, met, nowMs), ...counts, reasons };
}

/** The verdict on a row without would-be refusals: whether that proves anything depends on gaps and on requests. */
function assessSilence(
  { wholeSinceMs, why, problems }: Counting,
  met: MetRow | undefined,
  nowMs: number,
): Pick<RowReport, 'verdict' | 'text'> {
  const [problem] = problems;
  if (problem !== undefined || wholeSinceMs === null)
    return { verdict: 'not-known', text: `not known: ${problem ?? 'nothing is counted yet'}` };
  const isMet = met !== undefined && met.lastSeenMs >= nowMs - safeAfterMs;
  const sinceMs = Math.max(wholeSinceMs, isMet ? met.sinceMs : 0);
  if (nowMs - sinceMs < safeAfterMs) {
    const isOfRow = isMet && met.sinceMs - wholeSinceMs > atStartMs;
    const reason = isOfRow ? 'the first request of the row as it is now' : why;
    const many = isMet ? `none of ${requests(met.requests)} would have been refused` : 'no request met it';
    const text = `not known: ${many}, but the counts are complete only since ${toText(sinceMs)} (${reason})`;
    return { verdict: 'not-known', text: `${text}; the seven days end ${toText(sinceMs + safeAfterMs)}` };
  }
  if (!isMet) {
    const text = `not known: no request met it since ${toText(met?.lastSeenMs ?? sinceMs)}`;
    return { verdict: 'not-asked', text };
  }
  return {
    verdict: 'safe',
    text: `safe: 0 would-be refusals for seven days, counted without a gap; ${requests(met.requests)} met it since ${toText(met.sinceMs)}`,
  };
}

function reportReason(entry: RolloutEntry, nowMs: number): ReasonReport {
  const { kind, method, rejection, reason, clients, beyond, sinceMs, lastSeenMs } = entry;
  const first = Math.floor(nowMs / dayMs) - 6;
  const named = Object.entries(clients).map(([name, times]): NamedClient => {
    const [application = '', userAgent = ''] = name.split('\n');
    return { application, userAgent, requests: times };
  });
  named.sort((a, b) => b.requests - a.requests);
  return {
    ...{ kind, method, rejection, reason, requests: entry.requests, sinceMs, lastSeenMs },
    clients: { count: named.length, areMore: beyond > 0, named: named.slice(0, mostNamed) },
    days: Array.from({ length: 7 }, (_, i) => entry.days[String(first + i)] ?? 0),
    ...adviceOn(rejection, reason),
  };
}

function sumCauses(rows: readonly RowReport[]): Record<Cause, number> {
  const sums = { client: 0, setting: 0, either: 0 };
  for (const { kind, cause, requests: times } of rows.flatMap(({ reasons }) => reasons))
    if (kind === 'observed') sums[cause] += times;
  return sums;
}

/** The verdict on all rows together: the worst one. */
function summarise(rows: Readonly<Record<Verdict, readonly RowReport[]>>) {
  const parts = [
    rows.refuses.length > 0 && `${rows.refuses.length} would refuse requests`,
    rows['not-known'].length > 0 && `${rows['not-known'].length} not known yet`,
    rows['not-asked'].length > 0 && `${rows['not-asked'].length} without requests`,
    rows.safe.length > 0 && `${rows.safe.length} safe to enforce`,
  ].filter((part) => part !== false);
  const verdict = verdicts.find((one) => rows[one].length > 0) ?? 'enforced';
  const text = parts.length === 0 ? 'everything is enforced' : `of the observed rows: ${parts.join(', ')}`;
  return { verdict, text };
}

function lastOf(entries: readonly RolloutEntry[]): number {
  return entries.reduce((last, { lastSeenMs }) => Math.max(last, lastSeenMs), Number.NEGATIVE_INFINITY);
}

function requests(count: number): string {
  return count === 1 ? '1 request' : `${count} requests`;
}

/** A time in UTC, to the minute. */
export function toText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

import { resourceId } from '../access/protected-list.ts';
import type { RejectionName } from '../http/rejection.ts';
import type { Steps } from '../lib/slices.ts';
import { dayMs } from '../telemetry/decision-counts.ts';
import { type Cause, causeOf } from './causes.ts';
import { type Counting, toText } from './counting.ts';
import type { RolloutEntry } from './counts.ts';
import { type Asked, type ListedRow, noRow, RowIndex } from './observed-rows.ts';

/** A row is safe to enforce after so long without a would-be refusal. */
const safeAfterMs = 7 * dayMs;

/** A row that is first seen so soon after counting began counts from its beginning: the list is read a moment later. */
const atStartMs = 60_000;

/**
 * `enforced`: its refusals are enforced; `refuses`: enforcing it would refuse somebody; `safe`: it would have refused nobody for
 * seven days in which it had requests; `not-known`: nobody so far, but the seven days are not counted without a gap;
 * `not-asked`: nobody, but it had no requests either.
 */
export type Verdict = 'enforced' | 'refuses' | 'not-known' | 'not-asked' | 'safe';

export interface RowReport {
  /** `GET /carts/{id}`; `*`: requests that match no row. */
  readonly row: string;
  readonly verdict: Verdict;
  /** The verdict in a sentence. */
  readonly text: string;
  /** Requests that would have been refused, and that were, within the time for which they are kept. */
  readonly wouldBeRefused: number;
  readonly refused: number;
  /**
   * Requests that the row let pass or would have refused, on the UTC days that the last seven times 24 hours touch; null:
   * not counted.
   */
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
  /** Clients that are counted separately; `areMore`: there are others. Those with most requests are named. */
  readonly clients: {
    readonly count: number;
    readonly areMore: boolean;
    readonly named: RolloutEntry['clients'];
  };
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  /** Requests of the last seven days, the oldest first. */
  readonly days: readonly number[];
  /** What has to change, how, and the page of the docs. */
  readonly cause: Cause;
  readonly next: string;
  readonly more: string;
}

export interface RolloutReport {
  readonly nowMs: number;
  readonly verdict: Verdict;
  readonly text: string;
  readonly wholeSinceMs: number | null;
  readonly why: string;
  readonly problems: readonly string[];
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
  const entriesOf = new Map<string, RolloutEntry[]>();
  const index = new RowIndex();
  const isObserved = new Map<string, boolean>();
  for (const row of rows) {
    yield;
    index.add(row);
    isObserved.set(resourceId(row), isObserving || row.observe);
  }
  for (const entry of counting.entries) {
    const row = index.find(entry.method, entry.route) ?? `${entry.method} ${entry.route}`;
    const known = entriesOf.get(row);
    if (known === undefined) entriesOf.set(row, [entry]);
    else known.push(entry);
  }
  if (isObserving) isObserved.set(noRow, true);
  const unlisted = new Set([...entriesOf.keys()].filter((row) => !isObserved.has(row)));
  for (const row of unlisted) isObserved.set(row, false);
  const byVerdict = new Map<Verdict, RowReport[]>(verdicts.map((verdict) => [verdict, []]));
  for (const [row, isNow] of isObserved) {
    yield;
    const state = { isListed: !unlisted.has(row), isObserved: isNow };
    const report = reportRow(row, state, entriesOf.get(row) ?? [], counting, nowMs);
    if (report.verdict === 'enforced' && report.reasons.length === 0) continue;
    byVerdict.get(report.verdict)?.push(report);
  }
  const reports = verdicts.flatMap(
    (verdict) => byVerdict.get(verdict)?.sort((a, b) => b.wouldBeRefused - a.wouldBeRefused) ?? [],
  );
  const { wholeSinceMs, why, problems } = counting;
  return {
    nowMs,
    ...summarise(reports),
    wholeSinceMs,
    why,
    problems,
    causes: sumCauses(reports),
    rows: reports,
  };
}

/** All verdicts, the worst first. */
export const verdicts: readonly Verdict[] = ['refuses', 'not-known', 'not-asked', 'safe', 'enforced'];

function reportRow(
  row: string,
  { isListed, isObserved }: { readonly isListed: boolean; readonly isObserved: boolean },
  entries: readonly RolloutEntry[],
  counting: Counting,
  nowMs: number,
): RowReport {
  const sum = (kind: RolloutEntry['kind']) =>
    entries.reduce((total, entry) => total + (entry.kind === kind ? entry.requests : 0), 0);
  const asked = counting.asked?.[row];
  const counts = {
    wouldBeRefused: sum('observed'),
    refused: sum('refused'),
    asked: counting.asked && isObserved ? askedLately(asked, nowMs) : null,
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
  const sinceMs = counting.rowSinceMs(row);
  const fromMs = Math.max(nowMs - safeAfterMs, sinceMs ?? 0);
  const recent = entries.filter(({ kind, lastSeenMs }) => kind === 'observed' && lastSeenMs >= fromMs);
  if (recent.length > 0) {
    const many = recent.reduce((total, entry) => total + entry.requests, 0);
    const text = `not safe: ${requests(many)} would have been refused, the last ${toText(lastOf(recent))}`;
    return { row, verdict: 'refuses', text, ...counts, reasons };
  }
  return { row, ...assessSilence(counting, asked, sinceMs, nowMs), ...counts, reasons };
}

/** The verdict on a row without would-be refusals: whether that proves anything depends on gaps and on requests. */
function assessSilence(
  { wholeSinceMs, why, problems }: Counting,
  asked: Asked | undefined,
  rowSinceMs: number | undefined,
  nowMs: number,
): Pick<RowReport, 'verdict' | 'text'> {
  const [problem] = problems;
  if (problem !== undefined) return { verdict: 'not-known', text: `not known: ${problem}` };
  if (wholeSinceMs === null || rowSinceMs === undefined) {
    return { verdict: 'not-known', text: 'not known: nothing says since when this is counted' };
  }
  const sinceMs = Math.max(wholeSinceMs, rowSinceMs);
  if (nowMs - sinceMs < safeAfterMs) {
    const isOfRow = rowSinceMs - wholeSinceMs > atStartMs;
    const reason = isOfRow ? 'the row, or a setting that it depends on, changed then' : why;
    const many = asked === undefined ? 'nobody has asked for it yet' : 'nobody would have been refused yet';
    const text = `not known: ${many}, but the counts are complete only since ${toText(sinceMs)} (${reason})`;
    return { verdict: 'not-known', text: `${text}; the seven days end ${toText(sinceMs + safeAfterMs)}` };
  }
  if (asked === undefined || asked.lastSeenMs < nowMs - safeAfterMs) {
    const text = `not known: nobody asked for it since ${toText(asked?.lastSeenMs ?? sinceMs)}`;
    return { verdict: 'not-asked', text };
  }
  const many = requests(askedLately(asked, nowMs));
  return {
    verdict: 'safe',
    text: `safe: 0 would-be refusals for seven days, counted without a gap; ${many} asked for it`,
  };
}

/** Requests on all days that the last seven times 24 hours touch: at most a day too many, never too few. */
function askedLately(asked: Asked | undefined, nowMs: number): number {
  const first = Math.floor((nowMs - safeAfterMs) / dayMs);
  const days = Object.entries(asked?.days ?? {});
  return days.reduce((sum, [day, count]) => sum + (Number(day) >= first ? count : 0), 0);
}

function reportReason(entry: RolloutEntry, nowMs: number): ReasonReport {
  const { kind, method, rejection, reason, clients, beyond, sinceMs, lastSeenMs } = entry;
  const first = Math.floor(nowMs / dayMs) - 6;
  return {
    ...{ kind, method, rejection, reason, requests: entry.requests, sinceMs, lastSeenMs },
    clients: { count: clients.length, areMore: beyond > 0, named: clients.slice(0, mostNamed) },
    days: Array.from({ length: 7 }, (_, i) => entry.days[String(first + i)] ?? 0),
    ...causeOf(rejection, reason),
  };
}

function sumCauses(rows: readonly RowReport[]): Record<Cause, number> {
  const sums = { client: 0, setting: 0, either: 0 };
  for (const { verdict, reasons } of rows) {
    if (verdict !== 'refuses') continue;
    for (const { kind, cause, requests: times } of reasons) if (kind === 'observed') sums[cause] += times;
  }
  return sums;
}

/** The verdict on all rows together: that of the worst. */
function summarise(rows: readonly RowReport[]): Pick<RolloutReport, 'verdict' | 'text'> {
  const count = (verdict: Verdict) => rows.filter((row) => row.verdict === verdict).length;
  const [refuses = 0, notKnown = 0, notAsked = 0, safe = 0] = verdicts.map(count);
  const parts = [
    refuses > 0 && `${refuses} would refuse somebody`,
    notKnown > 0 && `${notKnown} not known yet`,
    notAsked > 0 && `${notAsked} that nobody asked for`,
    safe > 0 && `${safe} safe to enforce`,
  ].filter((part) => part !== false);
  const verdict = verdicts.find((one) => count(one) > 0) ?? 'enforced';
  const text = parts.length === 0 ? 'everything is enforced' : `of the observed rows: ${parts.join(', ')}`;
  return { verdict, text };
}

function lastOf(entries: readonly RolloutEntry[]): number {
  return entries.reduce((last, { lastSeenMs }) => Math.max(last, lastSeenMs), Number.NEGATIVE_INFINITY);
}

function requests(count: number): string {
  return count === 1 ? '1 request' : `${count} requests`;
}

import { resourceId } from '../access/protected-list.ts';
import type { RejectionName } from '../http/rejection.ts';
import { finish, type Steps } from '../lib/slices.ts';
import { combineEntries, dayMs, hourMs, type RolloutEntry } from './counts.ts';
import {
  type Asked,
  type AskedRows,
  combineAsked,
  type ListedRow,
  noRow,
  RowIndex,
} from './observed-rows.ts';
import type { RolloutState } from './rollout.ts';

/** A row may be enforced when nobody would have been refused for so long. */
const safeAfterMs = 7 * dayMs;

/** A row that is seen so soon is as old as the counts: a list is read when counting begins, and not before. */
const atStartMs = 60_000;

/** What the words of the report go by, wherever it was counted. */
export interface Counting {
  readonly entries: readonly RolloutEntry[];
  /** Undefined: nobody counts it. */
  readonly asked: AskedRows | undefined;
  /** Nothing is missing of what came since; null: that is not known. */
  readonly wholeSinceMs: number | null;
  /** Why not before, in words. */
  readonly why: string;
  /** Why nothing can be said of "0 would-be refusals", whatever was counted. */
  readonly problems: readonly string[];
  /** Since when a row is observed by the rule of now; undefined: not known. */
  rowSinceMs(row: string): number | undefined;
}

/**
 * `enforced`: its refusals are enforced; `refuses`: enforcing it would refuse somebody; `safe`: nobody for seven days, of
 * those who asked; `not-known`: nobody so far, but it was not counted whole for so long; `not-asked`: nobody, and nobody
 * asked either.
 */
export type Verdict = 'enforced' | 'refuses' | 'not-known' | 'not-asked' | 'safe';

export interface RowReport {
  /** `GET /carts/{id}`; `*`: requests that no row names. */
  readonly row: string;
  readonly verdict: Verdict;
  /** The verdict in a sentence. */
  readonly text: string;
  /** Requests that would have been refused, and that were, as long as they are kept. */
  readonly wouldBeRefused: number;
  readonly refused: number;
  /** Requests that the row let pass, or would have refused, in the days (UTC) that the last seven touch; null: not counted. */
  readonly asked: number | null;
  readonly reasons: readonly ReasonReport[];
}

export interface ReasonReport {
  readonly kind: 'observed' | 'refused';
  readonly method: string;
  readonly reason: RejectionName;
  readonly requests: number;
  /** Those that are told apart; `areMore`: there are more. The ones with most requests are named. */
  readonly clients: {
    readonly count: number;
    readonly areMore: boolean;
    readonly named: RolloutEntry['clients'];
  };
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  /** Requests of the last seven days and 24 hours, the oldest first. */
  readonly days: readonly number[];
  readonly hours: readonly number[];
  /** What to do about it, and where more is said. */
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
  readonly rows: readonly RowReport[];
}

/** What to do about a would-be refusal, so that enforcing it harms nobody. */
const nextSteps: Readonly<Partial<Record<RejectionName, string>>> = {
  'access-token-missing':
    'These clients send no token. If they may call this without one, remove the row; if not, let them sign in before you enforce.',
  'access-token-invalid':
    '`reason` in the log says what is wrong: `expired` is a client to mend, `unknown-key` or `signature` a setting of `auth`.',
  'insufficient-scope':
    'Their tokens lack a scope of the row: give it to the client, or remove it from the row.',
  'if-match-missing':
    'These clients change the resource without its tag: they have to send `If-Match` first.',
  'if-match-invalid':
    'These changes would have overwritten a newer state: refusing them is right, unless a front weakens the tags.',
  'refresh-token-invalid':
    'A client sent a used or revoked token again: mend the client that keeps it, or set `refreshTokens.leeway`.',
  'refresh-token-busy': 'Two refreshes with one token at once: let tabs and threads share one refresh.',
  'token-request-not-plain':
    'Let the client send token requests as plain JSON or as a form before you enforce.',
};
const otherStep = 'Look at these requests, and mend the client or the row.';

/** Clients that are named of each reason. */
const mostNamed = 5;

/** The states of all processes that share one store, or the one there is. `silent`: processes that did not answer. */
export function* combineStates(states: readonly RolloutState[], silent = 0): Steps<Counting> {
  const { shared } = states.find((state) => state.shared !== undefined) ?? { shared: undefined };
  const [first] = states;
  const problems = problemsOf(states, shared, silent);
  const here = states.map((state) => state.here);
  if (first === undefined || (first.hasStore && shared === undefined)) {
    const entries = combineEntries(here);
    return { entries, asked: undefined, wholeSinceMs: null, why: '', problems, rowSinceMs: () => undefined };
  }
  const { rowsSince } = shared ?? first;
  return {
    entries: combineEntries([shared?.entries ?? [], ...here]),
    asked: yield* combineAsked([shared?.asked ?? {}, ...states.map(({ askedHere }) => askedHere)]),
    wholeSinceMs: shared?.wholeSinceMs ?? first.startedMs,
    why: shared?.why ?? 'the memory store counts since the start of the process',
    problems,
    rowSinceMs: (row) => rowsSince[row],
  };
}

function problemsOf(
  states: readonly RolloutState[],
  shared: RolloutState['shared'],
  silent: number,
): string[] {
  const problems: string[] = [];
  if (silent > 0) problems.push(`${silent} of the workers did not answer`);
  const [first] = states;
  if (first?.hasStore && shared === undefined) {
    const since = states.map(({ writtenMs }) => writtenMs ?? Number.NEGATIVE_INFINITY);
    const sinceMs = Math.max(...since);
    const when = sinceMs > 0 ? `; last written ${toText(sinceMs)}` : '';
    problems.push(`the store cannot be read: only what is not written yet is shown${when}`);
  }
  const leftOut = states.flatMap(({ leftOutSinceMs }) => leftOutSinceMs ?? []);
  if (leftOut.length > 0) problems.push(`incomplete since ${toText(Math.min(...leftOut))}`);
  const rules = new Set([...states.map((state) => state.rules), ...(shared?.rules ?? [])]);
  if (rules.size > 1) problems.push('the replicas do not observe by the same list and settings');
  return problems;
}

/** Pure. Rows that are observed, or have refused somebody, those to look at first. */
export function reportRollout(
  counting: Counting,
  rows: readonly Omit<ListedRow, 'scopes'>[],
  isObserving: boolean,
  nowMs: number,
): RolloutReport {
  return finish(makeReport(counting, rows, isObserving, nowMs));
}

/** The same in steps: a list may have 60,000 rows. */
export function* makeReport(
  counting: Counting,
  rows: readonly Omit<ListedRow, 'scopes'>[],
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
  return { nowMs, ...summarise(reports), wholeSinceMs, why, problems, rows: reports };
}

/** Those to look at first come first. */
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

/** Nobody would have been refused: what that is worth depends on what was counted, and on whether anybody asked. */
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

/** Of the days that the last seven days touch: a few hours more, but never too little. */
function askedLately(asked: Asked | undefined, nowMs: number): number {
  const first = Math.floor((nowMs - safeAfterMs) / dayMs);
  const days = Object.entries(asked?.days ?? {});
  return days.reduce((sum, [day, count]) => sum + (Number(day) >= first ? count : 0), 0);
}

function reportReason(entry: RolloutEntry, nowMs: number): ReasonReport {
  const { kind, method, reason, clients, beyond, sinceMs, lastSeenMs } = entry;
  const last = (buckets: RolloutEntry['days'], spanMs: number, count: number) => {
    const newest = Math.floor(nowMs / spanMs);
    return Array.from({ length: count }, (_, i) => buckets[String(newest - count + 1 + i)] ?? 0);
  };
  return {
    ...{ kind, method, reason, requests: entry.requests, sinceMs, lastSeenMs },
    clients: { count: clients.length, areMore: beyond > 0, named: clients.slice(0, mostNamed) },
    days: last(entry.days, dayMs, 7),
    hours: last(entry.hours, hourMs, 24),
    next: nextSteps[reason] ?? otherStep,
    more: `docs/reasons.md#${reason}`,
  };
}

/** Of all rows together: as good as the worst of them. */
function summarise(rows: readonly RowReport[]): Pick<RolloutReport, 'verdict' | 'text'> {
  const count = (verdict: Verdict) => rows.filter((row) => row.verdict === verdict).length;
  const [refuses, notKnown, notAsked] = [count('refuses'), count('not-known'), count('not-asked')];
  const safe = count('safe');
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

/** UTC, to the minute. */
export function toText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

import type { Steps } from '../lib/slices.ts';
import { combineEntries, type RolloutEntry } from './counts.ts';
import { type AskedRows, combineAsked } from './observed-rows.ts';
import type { RolloutState } from './rollout.ts';

/** What a report is made from: the counts of the processes and of the store. */
export interface Counting {
  readonly entries: readonly RolloutEntry[];
  /** Undefined: the store cannot be read. */
  readonly asked: AskedRows | undefined;
  /** Since when the counts have no gap, milliseconds since the epoch; null: not known. */
  readonly wholeSinceMs: number | null;
  /** For people: why not longer. */
  readonly why: string;
  /** Why "0 would-be refusals" proves nothing. */
  readonly problems: readonly string[];
  /** Since when a row is observed by its current rule; undefined: not known. */
  rowSinceMs(row: string): number | undefined;
}

/** Combines the states of all processes that share a store. `silent`: how many did not answer. */
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
    problems.push('the store cannot be read: only what is not written yet is shown');
  }
  const leftOut = states.flatMap(({ leftOutSinceMs }) => leftOutSinceMs ?? []);
  if (leftOut.length > 0) problems.push(`incomplete since ${toText(Math.min(...leftOut))}`);
  const rules = new Set([...states.map((state) => state.rules), ...(shared?.rules ?? [])]);
  if (rules.size > 1) problems.push('the replicas do not observe by the same list and settings');
  return problems;
}

/** A time in UTC, to the minute. */
export function toText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}

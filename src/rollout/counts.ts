import {
  type CountedReason,
  type CountedRow,
  dayMs,
  type FreshReason,
} from '../telemetry/decision-counts.ts';

/** Bounds of the stored counts, so that no client can make them grow: rows with a reason, and clients of each. */
export const bounds = { refusals: 1_000, clients: 30, days: 7 } as const;

/** A row starts anew after this time without a request; it is safe after this time without a would-be refusal. */
export const safeAfterMs = bounds.days * dayMs;

/** A refusal that was enforced, or only observed. */
interface Refusal extends CountedRow, CountedReason {
  readonly kind: 'observed' | 'refused';
}

/** Requests with one refusal. Times in milliseconds since the epoch. */
export interface RefusalCount {
  readonly requests: number;
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  /** Number of the day since the epoch -> requests. */
  readonly days: Readonly<Record<string, number>>;
  /** Application and `User-Agent`, separated by a line feed -> requests. */
  readonly clients: Readonly<Record<string, number>>;
  /** Requests of further clients. */
  readonly beyond: number;
}

export type RolloutEntry = Refusal & RefusalCount;

/** Requests that an observed row decided, refused or not: without any, "0 would-be refusals" proves nothing. */
export interface MetRow {
  /** Digest of the rule by which the row decided them. */
  readonly rule: string;
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  readonly requests: number;
}

/** Counts by name of the row, and by name of the refusal (`nameRefusal`). */
export interface RolloutBatch {
  readonly rows: Readonly<Record<string, MetRow>>;
  readonly refusals: Readonly<Record<string, RefusalCount>>;
  /** Why counts of this process are missing; empty: none are missing. */
  readonly lost: string;
}

/** The data of a report. */
export interface Counting {
  readonly rows: Readonly<Record<string, MetRow>>;
  readonly entries: readonly RolloutEntry[];
  /** Since when the counts have no gap, milliseconds since the epoch; null: not known. */
  readonly wholeSinceMs: number | null;
  /** For people: why earlier counts are not complete. */
  readonly why: string;
  /** Why "0 would-be refusals" proves nothing. */
  readonly problems: readonly string[];
}

/** The state without any counts, and why. */
export function notCounted(problem: string): Counting {
  return { rows: {}, entries: [], wholeSinceMs: null, why: '', problems: [problem] };
}

/** The sums of all counts: in the memory of the process, or in Redis. Rejects if Redis fails. */
export interface RolloutCounts {
  /** Adds a batch of a process that has counted without a gap for `countedForMs`. */
  write(batch: RolloutBatch, countedForMs: number): Promise<void>;
  /** Removes rows that are no longer observed. */
  forget(rows: readonly string[]): Promise<void>;
  /** Undefined: no counts were written yet. */
  read(): Promise<Omit<Counting, 'problems'> | undefined>;
}

function nameRefusal({ kind, method, route, rejection, reason = '' }: Refusal): string {
  return `${kind} ${rejection}:${reason} ${method} ${route}`;
}

export function readRefusal(name: string): Refusal {
  const [, kind, rejection, reason, method, route] = /^(\S+) ([^\s:]+):(\S*) (\S+) (.*)$/s.exec(name) ?? [];
  return { kind, rejection, reason: reason || undefined, method, route } as Refusal;
}

/** The counts of a process since its last write, dated by the day of the last request. */
export function describeFresh(reasons: readonly FreshReason[]): [name: string, RefusalCount][] {
  return reasons.map(({ count, requests, sinceMs, lastSeenMs, clients, beyond }) => {
    const { rejection, reason, row } = count;
    const kind = count.kind === 'observed' ? 'observed' : 'refused';
    const name = nameRefusal({ kind, rejection, reason, method: row.method, route: row.route });
    const days = { [Math.floor(lastSeenMs / dayMs)]: requests };
    return [name, { requests, sinceMs, lastSeenMs, days, clients: Object.fromEntries(clients), beyond }];
  });
}

import type { ClientCount, FreshReason } from '../telemetry/decision-counts.ts';
import type { CountedReason, CountedRow } from '../telemetry/decision-counts.ts';

/** Limits of what the store keeps, so that no client can make it grow: rows with a reason, and clients of each. */
export const bounds = { entries: 1_000, clients: 100 } as const;

/** A refusal that was enforced, or only observed. */
interface Refusal extends CountedRow, CountedReason {
  readonly kind: 'observed' | 'refused';
}

/** Requests of one row and reason. Times in milliseconds since the epoch. */
export interface RolloutEntry extends Refusal {
  readonly requests: number;
  readonly sinceMs: number;
  readonly lastSeenMs: number;
  /** Number of the day since the epoch -> requests. */
  readonly days: Readonly<Record<string, number>>;
  /** Those with most requests first. */
  readonly clients: readonly Readonly<ClientCount>[];
  /** Requests of further clients, beyond those in `clients`. */
  readonly beyond: number;
}

/** What a process counted; `show`: how a client is named to others. */
export function describeFresh(reasons: readonly FreshReason[], show: (client: string) => string) {
  return reasons.map(({ count, requests, sinceMs, lastSeenMs, days, clients, beyond }): RolloutEntry => {
    const { kind, rejection, reason, row } = count;
    return {
      ...{
        kind: kind === 'observed' ? kind : 'refused',
        rejection,
        reason,
        method: row.method,
        route: row.route,
      },
      ...{ requests, sinceMs, lastSeenMs, beyond, days: Object.fromEntries(days) },
      clients: [...clients.values()].map((one) => ({ ...one, client: show(one.client) })).sort(byRequests),
    };
  });
}

/** Earlier versions read the reason as part of the name of the rejection. */
export function entryKey({ kind, method, route, rejection, reason }: Refusal): string {
  return `${kind} ${rejection}${reason === undefined ? '' : `:${reason}`} ${method} ${route}`;
}

export function readEntryKey(key: string): Refusal | undefined {
  const [, kind, rejection, reason, method, route] =
    /^(observed|refused) ([^\s:]+)(?::(\S+))? (\S+) (.+)$/s.exec(key) ?? [];
  return kind === undefined ? undefined : ({ kind, rejection, reason, method, route } as Refusal);
}

function byRequests(a: { readonly requests: number }, b: { readonly requests: number }): number {
  return b.requests - a.requests;
}

/** Adds up the entries of several processes, or those of the store and those that are not written yet. */
export function combineEntries(lists: readonly (readonly RolloutEntry[])[]): RolloutEntry[] {
  const combined = new Map<string, RolloutEntry>();
  for (const entry of lists.flat()) {
    const key = entryKey(entry);
    const known = combined.get(key);
    combined.set(key, known === undefined ? entry : addEntries(known, entry));
  }
  return [...combined.values()].sort(byRequests);
}

function addEntries(a: RolloutEntry, b: RolloutEntry): RolloutEntry {
  const clients = new Map<string, ClientCount>();
  for (const one of [...a.clients, ...b.clients]) {
    const key = `${one.client}\n${one.userAgent}`;
    const { requests = 0, lastSeenMs = 0 } = clients.get(key) ?? {};
    const latestMs = Math.max(lastSeenMs, one.lastSeenMs);
    clients.set(key, { ...one, requests: requests + one.requests, lastSeenMs: latestMs });
  }
  return {
    ...a,
    requests: a.requests + b.requests,
    sinceMs: Math.min(a.sinceMs, b.sinceMs),
    lastSeenMs: Math.max(a.lastSeenMs, b.lastSeenMs),
    days: addDays(a.days, b.days),
    clients: [...clients.values()].sort(byRequests),
    beyond: a.beyond + b.beyond,
  };
}

export function addDays(a: RolloutEntry['days'], b: RolloutEntry['days']): Record<string, number> {
  const sums = { ...a };
  for (const [day, requests] of Object.entries(b)) sums[day] = (sums[day] ?? 0) + requests;
  return sums;
}

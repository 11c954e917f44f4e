import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import { type RejectionName, rejectionKind, type Sender } from '../http/rejection.ts';
import { cutText } from '../lib/text.ts';
import type { ExchangeRecord } from './exchange-record.ts';

/** Limits of what is kept, so that no client can make it grow. Exported for its tests. */
export const bounds = {
  /** Pairs of template and method: more than the rows of the longest supported list. */
  rows: 70_000,
  /** Reasons of all rows together. */
  reasons: 5_000,
  /** Clients of each reason, and of all reasons together, until the next `take`. */
  clients: 100,
  allClients: 5_000,
  /** Characters of a `User-Agent`, and of the name of an application. */
  userAgent: 100,
  name: 200,
} as const;

export const dayMs = 24 * 3_600_000;

/** Requests with one method that one template decided; `*`: no row. */
export interface CountedRow {
  readonly method: string;
  readonly route: string;
}

/** `refused`: enforced; `observed`: forwarded all the same; `outage`: something broke; `answer`: no refusal at all. */
export interface CountedReason {
  readonly kind: 'refused' | 'observed' | 'outage' | 'answer';
  readonly rejection: RejectionName;
  /** Detail of the rejection, such as `expired`. */
  readonly reason: string | undefined;
}

/** Requests of a row with one outcome other than passing, since the start. */
interface ReasonCount extends CountedReason {
  readonly row: RowCount;
  requests: number;
  /** The requests since the last `take`. */
  fresh: FreshReason | undefined;
}

/** Requests of a row and method since the start. */
export interface RowCount extends CountedRow {
  requests: number;
  lastSeenMs: number;
  reasons: ReadonlyMap<string, ReasonCount>;
  fresh: FreshRow | undefined;
}

/** Requests that a row let pass, or would have refused, since the last `take`. */
export interface FreshRow {
  readonly row: RowCount;
  readonly sinceMs: number;
  lastSeenMs: number;
  requests: number;
}

/** Refused requests since the last `take`. */
export interface FreshReason {
  readonly count: ReasonCount;
  requests: number;
  readonly sinceMs: number;
  lastSeenMs: number;
  /** Application and `User-Agent`, separated by a line feed -> requests. Neither names a person. */
  readonly clients: Map<string, number>;
  /** Requests of further clients. */
  beyond: number;
}

/** What was counted since the last `take`. */
interface Fresh {
  readonly rows: FreshRow[];
  readonly reasons: FreshReason[];
  /** When a reason was first left out because there were too many; undefined: none was left out. */
  leftOutSinceMs: number | undefined;
}

/**
 * Counts every decision once: by row, reason and client, for metrics, console and roll-out
 * (docs/decisions/rollout-counts.md). On the hot path: two lookups and a few additions; only refusals build a string.
 */
export class DecisionCounts {
  /** Template -> method -> requests. The counts outlive reloads of the list. */
  readonly templates = new Map<string, Map<string, RowCount>>();
  /** What the shop's answers have shown. */
  readonly shop = {
    ...{ answers: 0, lastAnswerMs: 0, failures: 0, lastFailureMs: 0, lastFailure: '' },
    /** Time of the first failure after the last answer; 0: the shop is not failing. */
    failingSinceMs: 0,
  };
  /** Whether passed requests are counted for the roll-out as well: set while a row observes. */
  countsPassed = false;
  readonly #forRollout: boolean;
  /** All counts beyond the bounds together, so that sums stay complete. */
  readonly #beyond = startRow('', '');
  #rows = 0;
  #reasons = 0;
  #clients = 0;
  #fresh: Fresh = startFresh();

  /** `forRollout`: also counts clients. */
  constructor({ forRollout = false } = {}) {
    this.#forRollout = forRollout;
  }

  note(record: ExchangeRecord, nowMs: number, request?: CanonicalRequest, sender?: Sender): void {
    const { rejection, decision } = record;
    const row = this.#rowOf(record);
    row.requests++;
    row.lastSeenMs = nowMs;
    if (decision === 'forwarded') {
      this.shop.answers++;
      this.shop.lastAnswerMs = nowMs;
      this.shop.failingSinceMs = 0;
    } else if (rejection?.startsWith('upstream-')) this.#noteFailure(rejection, record.fault, nowMs);
    // An enforced refusal (such as missing keys) or an aborted request does not show what the row would have done.
    const isDecided = rejection === undefined && (decision !== 'aborted' || record.observed !== undefined);
    if (this.countsPassed && isDecided) this.#addPassed(row, nowMs);
    const counted = reasonOf(record);
    if (counted === undefined) return;
    const count = this.#countOf(row, counted);
    count.requests++;
    if (this.#forRollout && (count.kind === 'refused' || count.kind === 'observed')) {
      const userAgent = (request && fieldValue(request.fields, 'user-agent')) ?? '';
      const application = cutText(sender?.clientId ?? '', bounds.name);
      this.#addFresh(count, `${application}\n${cutText(userAgent, bounds.userAgent)}`, nowMs);
    }
  }

  *rows(): Generator<RowCount> {
    for (const methods of this.templates.values()) yield* methods.values();
    yield this.#beyond;
  }

  /** The counts since the last `take`, which are not reset. */
  fresh(): Readonly<Fresh> {
    return this.#fresh;
  }

  /** As `fresh`, and starts from zero. */
  take(): Fresh {
    const taken = this.#fresh;
    for (const { row } of taken.rows) row.fresh = undefined;
    for (const { count } of taken.reasons) count.fresh = undefined;
    this.#fresh = startFresh();
    this.#clients = 0;
    return taken;
  }

  #rowOf({ route, method }: ExchangeRecord): RowCount {
    const matched = countedMethod(method);
    const methods = this.templates.get(route);
    const known = methods?.get(matched);
    if (known !== undefined) return known;
    if (this.#rows >= bounds.rows) return this.#beyond;
    this.#rows++;
    const row = startRow(route, matched);
    if (methods === undefined) this.templates.set(route, new Map([[matched, row]]));
    else methods.set(matched, row);
    return row;
  }

  #noteFailure(rejection: RejectionName, fault: string | undefined, nowMs: number): void {
    this.shop.failures++;
    this.shop.failingSinceMs ||= nowMs;
    this.shop.lastFailureMs = nowMs;
    this.shop.lastFailure = fault === undefined ? rejection : `${rejection} (${fault})`;
  }

  #countOf(row: RowCount, counted: CountedReason): ReasonCount {
    const key = reasonKey(counted);
    const owner = row.reasons.has(key) || this.#reasons < bounds.reasons ? row : this.#beyond;
    const known = owner.reasons.get(key);
    if (known !== undefined) return known;
    this.#reasons++;
    const count: ReasonCount = { ...counted, row: owner, requests: 0, fresh: undefined };
    owner.reasons = new Map([...owner.reasons, [key, count]]);
    return count;
  }

  #addPassed(row: RowCount, nowMs: number): void {
    if (row.fresh === undefined) {
      row.fresh = { row, sinceMs: nowMs, lastSeenMs: nowMs, requests: 0 };
      this.#fresh.rows.push(row.fresh);
    }
    row.fresh.lastSeenMs = nowMs;
    row.fresh.requests++;
  }

  #addFresh(count: ReasonCount, client: string, nowMs: number): void {
    if (count.row === this.#beyond) {
      this.#fresh.leftOutSinceMs ??= nowMs;
      return;
    }
    if (count.fresh === undefined) {
      const times = { sinceMs: nowMs, lastSeenMs: nowMs };
      count.fresh = { count, requests: 0, ...times, clients: new Map(), beyond: 0 };
      this.#fresh.reasons.push(count.fresh);
    }
    const { fresh } = count;
    fresh.requests++;
    fresh.lastSeenMs = nowMs;
    const known = fresh.clients.get(client);
    if (known !== undefined) {
      fresh.clients.set(client, known + 1);
    } else if (fresh.clients.size >= bounds.clients || this.#clients >= bounds.allClients) {
      fresh.beyond++;
    } else {
      this.#clients++;
      fresh.clients.set(client, 1);
    }
  }
}

const kinds = { refusal: 'refused', outage: 'outage', answer: 'answer' } as const;

/** Why a request did not simply pass; undefined: it did. */
export function reasonOf({ rejection, observed, reason }: ExchangeRecord): CountedReason | undefined {
  if (rejection !== undefined) return { kind: kinds[rejectionKind(rejection)], rejection, reason };
  return observed && { kind: 'observed', rejection: observed, reason };
}

export function reasonKey({ kind, rejection, reason = '' }: CountedReason): string {
  return `${kind} ${rejection} ${reason}`;
}

/** A HEAD request meets the rows of GET. */
export function countedMethod(method: ExchangeRecord['method']): ExchangeRecord['method'] {
  return method === 'HEAD' ? 'GET' : method;
}

/** Most rows refuse nothing, and need no map. */
const none: ReadonlyMap<string, ReasonCount> = new Map();

function startRow(route: string, method: string): RowCount {
  return { route, method, requests: 0, lastSeenMs: 0, reasons: none, fresh: undefined };
}

function startFresh(): Fresh {
  return { rows: [], reasons: [], leftOutSinceMs: undefined };
}

/** Sums over rows: requests, and for each rejection its refusals, observed refusals and outages. */
export function sumRows(rows: Iterable<RowCount>) {
  const names = { refused: {}, observed: {}, outage: {}, answer: {} } as Record<
    CountedReason['kind'],
    NamedCounts
  >;
  let [requests, lastSeenMs] = [0, 0];
  for (const row of rows) {
    requests += row.requests;
    lastSeenMs = Math.max(lastSeenMs, row.lastSeenMs);
    for (const { kind, rejection, requests: times } of row.reasons.values())
      names[kind][rejection] = (names[kind][rejection] ?? 0) + times;
  }
  const { refused: refusals, observed, outage: outages } = names;
  return { requests, refusals, observed, outages, lastSeenMs: lastSeenMs || null };
}

type NamedCounts = Partial<Record<RejectionName, number>>;

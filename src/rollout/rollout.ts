import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import { rejectionKind, type Sender } from '../http/rejection.ts';
import type { Component } from '../lib/component.ts';
import { isolateLate } from '../lib/faults.ts';
import { finishInSlices } from '../lib/slices.ts';
import { cutText } from '../lib/text.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import type { Redis } from '../redis/redis.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { bounds, type Refusal, type RolloutClient, RolloutCounts, type RolloutEntry } from './counts.ts';
import { type AskedRows, combineAsked, type ListedRow, ObservedRows } from './observed-rows.ts';
import { describeShared, type RolloutBatch, SharedCounts, type SharedRollout } from './shared-counts.ts';

interface RolloutOptions {
  /** Milliseconds for which a row and reason, or a client, is kept after it was last seen. */
  readonly keepMs: number;
  /** Milliseconds between two writes. */
  readonly intervalMs: number;
  /** Whether the whole proxy is in observe mode. */
  readonly isObserving: boolean;
  /** The settings that decide on refusals, as text. */
  readonly rules: string;
  /** Gives the same array until the list changes. */
  rows(): readonly ListedRow[];
  /** The store in which all replicas count; undefined: only this process counts. */
  readonly store: { readonly redis: Redis; readonly prefix: string } | undefined;
  /** Registers a listener for "the store's data may be another from now on". */
  onNewData?(listener: (why: string) => void): void;
  /** Called with an error that is not the store's being away. */
  onFault(fault: unknown): void;
  /** Clock in milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: () => number;
}

/** What a process knows, for the report. */
export interface RolloutState {
  /** Undefined: there is no shared store, or it cannot be read now. */
  readonly shared: SharedRollout | undefined;
  readonly hasStore: boolean;
  /** Counts of this process that are not in `shared`. */
  readonly here: readonly RolloutEntry[];
  readonly askedHere: AskedRows;
  /** Since when this process counts, and since when it has seen each row observed. */
  readonly startedMs: number;
  readonly rowsSince: Readonly<Record<string, number>>;
  /** When this process last wrote to the store; null: never. */
  readonly writtenMs: number | null;
  /** Since when this process has left something out; null: it has not. */
  readonly leftOutSinceMs: number | null;
  /** Digest of the rules. */
  readonly rules: string;
}

/** Entries in one write: a script blocks the whole store. */
const batchSize = 50;
/** Rows with requests in one write, a field each. */
const askedSize = 500;

/** Prefix of application names, which identify no person. Subjects and addresses are stored as digests. */
const applicationPrefix = 'client ';
const longestName = 200;

function nameSender(sender: Sender | undefined): string | undefined {
  if (sender === undefined) return undefined;
  const { subject, clientId } = sender;
  return clientId === undefined
    ? `subject ${cutText(subject, longestName)}`
    : `${applicationPrefix}${cutText(clientId, longestName)}`;
}

/**
 * Counts refusals, enforced and observed, by row, reason and client, and writes them to the shared store every few seconds. No
 * request waits for it. docs/decisions/rollout-counts.md.
 */
export class Rollout implements Component {
  readonly name = 'rollout';
  readonly title = false;
  readonly #options: RolloutOptions;
  readonly #shared: SharedCounts | undefined;
  readonly #now: () => number;
  readonly #id = randomUUID();
  readonly #startedMs: number;
  #salt = randomBytes(16).toString('hex');
  /** Whether `#salt` is that of the store. */
  #isMet = false;
  #counts: RolloutCounts;
  /** Batches that are not confirmed yet, the oldest first; the first may have been written, with its reply lost. */
  #waiting: RolloutBatch[] = [];
  #batches = 0;
  #lost = '';
  #leftOutSinceMs: number | null = null;
  #writtenMs: number | null = null;
  readonly #rows: ObservedRows;
  /** The rules that were written last; undefined: they have to be written (again). */
  #rowsWritten: ObservedRows['rules'] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;

  constructor(options: RolloutOptions) {
    const { store, keepMs, now = Date.now } = options;
    this.#options = options;
    this.#now = now;
    this.#startedMs = now();
    this.#counts = new RolloutCounts(keepMs);
    this.#rows = new ObservedRows({ ...options, now });
    if (store !== undefined) this.#shared = new SharedCounts(store.redis, store.prefix, keepMs);
    options.onNewData?.((why) => {
      // The last writes may be missing in the store's data of now.
      if (this.#writtenMs !== null) this.#lost ||= `the store's data may be older: ${why}`;
      this.#rowsWritten = undefined;
    });
  }

  async start(): Promise<void> {
    await this.#rows.refresh();
    this.#timer = setInterval(() => isolateLate(this.flush()), this.#options.intervalMs).unref();
    isolateLate(this.flush());
  }

  /** On the hot path: a few lookups while rows observe, a few additions for a refusal, else nothing. */
  note(record: ExchangeRecord, request: CanonicalRequest | undefined, sender: Sender | undefined): void {
    const { rejection, observed } = record;
    const method = record.method === 'HEAD' ? 'GET' : record.method;
    this.#rows.follow();
    // An enforced refusal (such as missing keys) or an aborted request does not show what the row would have done.
    if (rejection === undefined && record.decision !== 'aborted') this.#rows.note(method, record.route);
    if (rejection === undefined && observed === undefined) return;
    const reason = rejection ?? observed;
    if (reason === undefined || rejectionKind(reason) !== 'refusal') return;
    const kind = rejection === undefined ? 'observed' : 'refused';
    const refusal: Refusal = { kind, method, route: record.route, reason };
    this.#counts.note(refusal, this.#clientOf(record, request, sender), this.#now());
  }

  /** Writes the counts; those that the store does not take are written the next time. Never rejects. */
  flush(): Promise<void> {
    this.#flushing ??= this.#tryToWrite(false).finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #tryToWrite(isLast: boolean): Promise<void> {
    try {
      await this.#write(isLast);
    } catch (fault) {
      if (!(fault instanceof RedisUnavailable)) this.#options.onFault(fault);
    }
  }

  /** The counts of the store, and those that this process has not written yet. */
  async state(): Promise<RolloutState> {
    await this.#rows.refresh();
    const written = await this.#shared?.read().catch(() => undefined);
    const waiting = this.#waiting.flatMap(({ entries }) => entries);
    const askedWaiting = this.#waiting.map(({ asked }) => asked);
    const known = {
      hasStore: this.#shared !== undefined,
      here: [...waiting, ...this.#entries()],
      startedMs: this.#startedMs,
      rowsSince: this.#rows.since,
      writtenMs: this.#writtenMs,
      leftOutSinceMs: this.#leftOutSinceMs ?? this.#counts.leftOutSinceMs ?? null,
      rules: this.#rows.digest,
    };
    // Everything above is read at one moment; the following takes several turns.
    const asked = await finishInSlices(this.#rows.asked());
    const shared = written && (await finishInSlices(describeShared(written)));
    return { ...known, shared, askedHere: await finishInSlices(combineAsked([...askedWaiting, asked])) };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#tryToWrite(true);
  }

  #clientOf(
    { clientAddress }: ExchangeRecord,
    request: CanonicalRequest | undefined,
    sender: Sender | undefined,
  ): RolloutClient {
    const userAgent = (request && fieldValue(request.fields, 'user-agent')) ?? '';
    const client = nameSender(sender) ?? clientAddress;
    return { client, userAgent: cutText(userAgent, bounds.userAgent) };
  }

  #entries(): RolloutEntry[] {
    return this.#counts.entries((client) =>
      client.startsWith(applicationPrefix)
        ? client
        : createHmac('sha256', this.#salt).update(client).digest('hex').slice(0, 12),
    );
  }

  async #write(isLast: boolean): Promise<void> {
    await this.#rows.refresh();
    if (this.#shared === undefined) return;
    // Clients are digested with the salt of the store: it comes first.
    if (!this.#isMet) {
      this.#salt = await this.#shared.write(this.#batch({}));
      this.#isMet = true;
    }
    this.#gather();
    const { rules, seenMs } = this.#rows;
    if (this.#rowsWritten !== rules) {
      // What is observed anew was counted since it was seen; nothing says that of the data of a store that was not written to.
      await this.#shared.tellRows(rules, this.#rowsWritten === undefined ? this.#now() : seenMs);
      this.#rowsWritten = rules;
    }
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      await this.#shared.write(next);
      this.#waiting.shift();
    }
    const lost = this.#lost;
    this.#salt = await this.#shared.write(this.#batch({ isLast, lost }));
    this.#lost = '';
    await this.#shared.keepRows();
    this.#writtenMs = this.#now();
    this.#leftOutSinceMs = null;
  }

  /** Makes batches of the new counts, once the last batches are written. */
  #gather(): void {
    if (this.#waiting.length > 0) return;
    const { leftOutSinceMs } = this.#counts;
    if (leftOutSinceMs !== undefined) {
      this.#lost ||= 'there were more rows and reasons than a process keeps';
      this.#leftOutSinceMs = leftOutSinceMs;
    }
    const entries = this.#entries();
    this.#counts = new RolloutCounts(this.#options.keepMs);
    for (let i = 0; i < entries.length; i += batchSize) {
      this.#waiting.push(this.#batch({ entries: entries.slice(i, i + batchSize) }));
    }
    const asked = Object.entries(this.#rows.takeAsked());
    for (let i = 0; i < asked.length; i += askedSize) {
      this.#waiting.push(this.#batch({ asked: Object.fromEntries(asked.slice(i, i + askedSize)) }));
    }
  }

  /**
   * A batch with counts gets the next number, by which the store adds it only once; an announcement without counts does
   * not.
   */
  #batch(content: Partial<Pick<RolloutBatch, 'entries' | 'asked' | 'isLast' | 'lost'>>): RolloutBatch {
    if (content.entries !== undefined || content.asked !== undefined) this.#batches++;
    const common = { id: this.#id, number: this.#batches, rules: this.#rows.digest, salt: this.#salt };
    return { ...common, lost: '', isLast: false, entries: [], asked: {}, ...content };
  }
}

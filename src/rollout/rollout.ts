import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { CanonicalRequest } from '../http/canonical-request.ts';
import { fieldValue } from '../http/field-list.ts';
import type { Sender } from '../http/rejection.ts';
import { rejectionKind } from '../http/rejection-kind.ts';
import type { Component } from '../lib/component.ts';
import { isolateLate } from '../lib/faults.ts';
import { finishInSlices } from '../lib/slices.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import type { Redis } from '../redis/redis.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';
import { bounds, type Refusal, type RolloutClient, RolloutCounts, type RolloutEntry } from './counts.ts';
import { type AskedRows, combineAsked, type ListedRow, ObservedRows } from './observed-rows.ts';
import { describeShared, type RolloutBatch, SharedCounts, type SharedRollout } from './shared-counts.ts';

interface RolloutOptions {
  /** Who is kept of clients: nobody, digests that only tell them apart, or subjects and addresses. */
  readonly clients: 'off' | 'digest' | 'named';
  /** How long a row and reason, or a client, is kept that is not seen again. Milliseconds. */
  readonly keepMs: number;
  /** Between two writes. Milliseconds. */
  readonly intervalMs: number;
  /** Everything is in observe mode. */
  readonly isObserving: boolean;
  /** What of the configuration decides, as text. */
  readonly rules: string;
  /** The same array as long as the list is the same. */
  rows(): readonly ListedRow[];
  /** Where all replicas count; undefined: this process alone. */
  readonly store: { readonly redis: Redis; readonly prefix: string } | undefined;
  /** The store's data may be another one from now on. */
  onNewData?(listener: (why: string) => void): void;
  /** A bug, or a store that does not do what it says. */
  onFault(fault: unknown): void;
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: () => number;
}

/** What a process knows, for the report. */
export interface RolloutState {
  /** Undefined: there is no shared store, or it cannot be read now. */
  readonly shared: SharedRollout | undefined;
  readonly hasStore: boolean;
  /** What is counted here and not in `shared`. */
  readonly here: readonly RolloutEntry[];
  readonly askedHere: AskedRows;
  /** What the counts of this process alone are whole since, with since when each row is observed. */
  readonly startedMs: number;
  readonly rowsSince: Readonly<Record<string, number>>;
  /** What is counted here was last written at; null: never. */
  readonly writtenMs: number | null;
  /** Something that was counted here was left out since; null: nothing was. */
  readonly leftOutSinceMs: number | null;
  /** Digest of the rules. */
  readonly rules: string;
}

/** Entries of one write: a script holds up the whole store. */
const batchSize = 50;
/** Rows that were asked of one write: each is one field. */
const askedSize = 500;

/** Before what names an application: it is no person, and is shown with `clients: digest`, too. */
const applicationPrefix = 'client ';
const longestName = 200;

function nameSender(sender: Sender | undefined): string | undefined {
  if (sender === undefined) return undefined;
  const { subject, clientId } = sender;
  return clientId === undefined
    ? `subject ${subject.slice(0, longestName)}`
    : `${applicationPrefix}${clientId.slice(0, longestName)}`;
}

/**
 * Counts requests that were refused, or would have been, by row, reason and client; writes what was counted to the shared
 * store every few seconds. No request ever waits for it: docs/decisions/rollout-counts.md.
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
  /** Whether the salt is the store's. */
  #isMet = false;
  #counts: RolloutCounts;
  /** What was not taken yet, the oldest first; the first may have been written without our hearing of it. */
  #waiting: RolloutBatch[] = [];
  #batches = 0;
  #lost = '';
  #leftOutSinceMs: number | null = null;
  #writtenMs: number | null = null;
  readonly #rows: ObservedRows;
  /** As they were written last; undefined: the store's data may be another one. */
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
      // What was written last may not be in the data of now.
      if (this.#writtenMs !== null) this.#lost ||= `the store's data may be older: ${why}`;
      this.#rowsWritten = undefined;
    });
  }

  async start(): Promise<void> {
    await this.#rows.refresh();
    this.#timer = setInterval(() => isolateLate(this.flush()), this.#options.intervalMs).unref();
    isolateLate(this.flush());
  }

  /** A few look-ups where rows only observe; a few additions for what met a refusal; else nothing. */
  note(record: ExchangeRecord, request: CanonicalRequest | undefined, sender: Sender | undefined): void {
    const { rejection, observed } = record;
    const method = record.method === 'HEAD' ? 'GET' : record.method;
    // What was really refused, or what nobody waited for, says nothing of what the row would do: keys may be out of reach.
    if (rejection === undefined && record.decision !== 'aborted') this.#rows.note(method, record.route);
    if (rejection === undefined && observed === undefined) return;
    const reason = rejection ?? observed;
    if (reason === undefined || rejectionKind(reason) !== 'refusal') return;
    const kind = rejection === undefined ? 'observed' : 'refused';
    const refusal: Refusal = { kind, method, route: record.route, reason };
    this.#counts.note(refusal, this.#clientOf(record, request, sender), this.#now());
  }

  /** Writes what was counted; never rejects. What the store does not take is written the next time. */
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

  /** What is known now, with what this process has not written yet. */
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
    // All of it is of one moment; what follows takes long with a long list.
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
  ): RolloutClient | undefined {
    if (this.#options.clients === 'off') return undefined;
    const userAgent = (request && fieldValue(request.fields, 'user-agent')) ?? '';
    const client = nameSender(sender) ?? clientAddress;
    return { client, userAgent: userAgent.slice(0, bounds.userAgent) };
  }

  #entries(): RolloutEntry[] {
    if (this.#options.clients === 'named') return this.#counts.entries();
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
    const { rules } = this.#rows;
    if (this.#rowsWritten !== rules) {
      await this.#shared.tellRows(rules, this.#now());
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

  /** What was counted since the last time becomes batches; not before the last ones are written. */
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

  /** What is counted has a number of its own, and counts once; what only says who is there has none. */
  #batch(content: Partial<Pick<RolloutBatch, 'entries' | 'asked' | 'isLast' | 'lost'>>): RolloutBatch {
    if (content.entries !== undefined || content.asked !== undefined) this.#batches++;
    const common = { id: this.#id, number: this.#batches, rules: this.#rows.digest, salt: this.#salt };
    return { ...common, lost: '', isLast: false, entries: [], asked: {}, ...content };
  }
}

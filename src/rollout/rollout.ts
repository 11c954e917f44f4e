import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import type { Component } from '../lib/component.ts';
import { isolateLate } from '../lib/faults.ts';
import { finish, finishInSlices } from '../lib/slices.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import type { Redis } from '../redis/redis.ts';
import { applicationPrefix, type DecisionCounts } from '../telemetry/decision-counts.ts';
import { describeFresh, type RolloutEntry } from './counts.ts';
import { type AskedRows, combineAsked, type ListedRow, ObservedRows } from './observed-rows.ts';
import { describeShared, type RolloutBatch, SharedCounts, type SharedRollout } from './shared-counts.ts';

interface RolloutOptions {
  /** The counts of this process. */
  readonly counts: DecisionCounts;
  /** Milliseconds for which a row and reason, or a client, is kept after it was last seen. */
  readonly keepMs: number;
  /** Milliseconds between two writes. */
  readonly intervalMs: number;
  /** Whether the whole proxy is in observe mode. */
  isObserving(): boolean;
  /** The settings that decide on refusals, as text. */
  rules(): string;
  /** Gives the same rows until the list, or what `isObserving` and `rules` say, changes. */
  rows(): Iterable<ListedRow>;
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
  /** Since when this process has left something out; null: it has not. */
  readonly leftOutSinceMs: number | null;
  /** Digest of the rules. */
  readonly rules: string;
}

/** Entries in one write: a script blocks the whole store. */
const batchSize = 50;
/** Rows with requests in one write, a field each. */
const askedSize = 500;

/**
 * Writes the counts of refusals, enforced and observed, to the shared store every few seconds. No request waits for it.
 * docs/decisions/rollout-counts.md.
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
  /** Batches that are not confirmed yet, the oldest first; the first may have been written, with its reply lost. */
  #waiting: RolloutBatch[] = [];
  #batches = 0;
  #lost = '';
  #leftOutSinceMs: number | null = null;
  #hasWritten = false;
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
    this.#rows = new ObservedRows({ ...options, now });
    if (store !== undefined) this.#shared = new SharedCounts(store.redis, store.prefix, keepMs);
    options.onNewData?.((why) => {
      // The last writes may be missing in the store's data of now.
      if (this.#hasWritten) this.#lost ||= `the store's data may be older: ${why}`;
      this.#rowsWritten = undefined;
    });
  }

  async start(): Promise<void> {
    await this.#refresh();
    this.#timer = setInterval(() => isolateLate(this.flush()), this.#options.intervalMs).unref();
    isolateLate(this.flush());
  }

  /** The list may have been edited: what is refused from now on is by the new one. */
  follow(): void {
    if (this.#rows.isOutdated) isolateLate(this.#refresh());
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
    await this.#refresh();
    const written = await this.#shared?.read().catch(() => undefined);
    const waiting = this.#waiting.flatMap(({ entries }) => entries);
    const askedWaiting = this.#waiting.map(({ asked }) => asked);
    const { reasons, rows, leftOutSinceMs } = this.#options.counts.fresh();
    const known = {
      hasStore: this.#shared !== undefined,
      here: [...waiting, ...this.#describe(reasons)],
      startedMs: this.#startedMs,
      rowsSince: this.#rows.since,
      leftOutSinceMs: this.#leftOutSinceMs ?? leftOutSinceMs ?? null,
      rules: this.#rows.digest,
    };
    // Everything above is read at one moment; the following takes several turns.
    const asked = await finishInSlices(this.#rows.askedOf(rows));
    const shared = written && (await finishInSlices(describeShared(written)));
    return { ...known, shared, askedHere: await finishInSlices(combineAsked([...askedWaiting, asked])) };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.#tryToWrite(true);
  }

  /** Clients that are no applications are told apart by a digest alone. */
  #describe(reasons: ReturnType<DecisionCounts['take']>['reasons']): RolloutEntry[] {
    return describeFresh(reasons, (client) =>
      client.startsWith(applicationPrefix)
        ? client
        : createHmac('sha256', this.#salt).update(client).digest('hex').slice(0, 12),
    );
  }

  async #refresh(): Promise<void> {
    await this.#rows.refresh();
    this.#options.counts.countsPassed = this.#rows.rules.size > 0;
  }

  async #write(isLast: boolean): Promise<void> {
    await this.#refresh();
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
    this.#hasWritten = true;
    this.#leftOutSinceMs = null;
  }

  /** Makes batches of the new counts, once the last batches are written. */
  #gather(): void {
    if (this.#waiting.length > 0) return;
    const { reasons, rows, leftOutSinceMs } = this.#options.counts.take();
    if (leftOutSinceMs !== undefined) {
      this.#lost ||= 'there were more rows and reasons than a process keeps';
      this.#leftOutSinceMs = leftOutSinceMs;
    }
    const entries = this.#describe(reasons);
    for (let i = 0; i < entries.length; i += batchSize) {
      this.#waiting.push(this.#batch({ entries: entries.slice(i, i + batchSize) }));
    }
    const asked = Object.entries(finish(this.#rows.askedOf(rows)));
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

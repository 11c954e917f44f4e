import { setImmediate as nextIteration } from 'node:timers/promises';
import type { Component } from '../lib/component.ts';
import { isolateLate } from '../lib/faults.ts';
import { finishInSlices } from '../lib/slices.ts';
import { RedisUnavailable } from '../redis/faults.ts';
import type { DecisionCounts } from '../telemetry/decision-counts.ts';
import { type Counting, describeFresh, notCounted, type RolloutBatch, type RolloutCounts } from './counts.ts';
import { ObservedRows, type ObservedRowsOptions } from './observed-rows.ts';

interface RolloutOptions extends ObservedRowsOptions {
  /** The counts of this process. */
  readonly counts: DecisionCounts;
  /** Where they are added up. */
  readonly store: RolloutCounts;
  /** Milliseconds between two writes. */
  readonly intervalMs: number;
  /** Called with an error other than an unreachable store. */
  onFault(fault: unknown): void;
  /** Clock in milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: () => number;
}

/**
 * Adds up refusals, enforced and observed, in the store every few seconds. No request waits for it.
 * docs/decisions/rollout-counts.md.
 */
export class Rollout implements Component {
  readonly name = 'rollout';
  readonly title = false;
  readonly #options: RolloutOptions;
  readonly #now: () => number;
  readonly #rows: ObservedRows;
  /** Batches that are not confirmed yet, the oldest first. A batch whose reply is lost is written again, and counts twice. */
  #waiting: RolloutBatch[] = [];
  /** Time up to which all counts were taken, and time up to which they are written. */
  #takenMs: number;
  #writtenMs: number;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<boolean> | undefined;

  constructor(options: RolloutOptions) {
    const { now = Date.now } = options;
    this.#options = options;
    this.#now = now;
    this.#rows = new ObservedRows(options);
    this.#takenMs = this.#writtenMs = now();
  }

  async start(): Promise<void> {
    await this.#refresh();
    this.#timer = setInterval(() => isolateLate(this.flush()), this.#options.intervalMs).unref();
    isolateLate(this.flush());
  }

  /** The list may have been edited: counts until now belong to the old list. */
  follow(): void {
    if (!this.#rows.isOutdated) return;
    isolateLate(this.#flushing === undefined ? this.flush() : this.#flushing.then(() => this.flush()));
  }

  /** Writes the counts, and keeps those that the store does not take. Resolves to whether the store took all. */
  flush(): Promise<boolean> {
    this.#flushing ??= this.#tryToWrite().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** The counts of all processes that share the store. */
  async state(): Promise<Counting> {
    const isWritten = await this.flush();
    const counts = await this.#options.store.read().catch(() => undefined);
    if (counts === undefined) return notCounted('the store cannot be read');
    const rows = await finishInSlices(this.#rows.ofThisRule(counts.rows));
    const problems = isWritten ? [] : ['the last counts could not be written to the store'];
    return { ...counts, rows, problems };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
  }

  async #refresh(): Promise<void> {
    await this.#rows.refresh();
    this.#options.counts.countsPassed = this.#rows.rules.size > 0;
  }

  async #tryToWrite(): Promise<boolean> {
    try {
      await this.#write();
      return true;
    } catch (fault) {
      if (!(fault instanceof RedisUnavailable)) this.#options.onFault(fault);
      return false;
    }
  }

  async #write(): Promise<void> {
    const { store } = this.#options;
    if (this.#waiting.length === 0 || this.#rows.isOutdated) await this.#take();
    await this.#refresh();
    do {
      await store.write(this.#waiting[0] ?? nothing, this.#now() - this.#writtenMs);
      this.#waiting.shift();
      // The memory store answers at once, so give requests a chance between batches.
      await nextIteration();
    } while (this.#waiting.length > 0);
    this.#writtenMs = this.#takenMs;
    const gone = this.#rows.gone.slice();
    await store.forget(gone);
    this.#rows.gone.splice(0, gone.length);
  }

  /** Makes batches of the new counts. */
  async #take(): Promise<void> {
    const { reasons, rows, leftOutSinceMs } = this.#options.counts.take();
    this.#takenMs = this.#now();
    const lost = leftOutSinceMs === undefined ? '' : 'there were more rows and reasons than a process keeps';
    if (lost !== '') this.#waiting.push({ ...nothing, lost });
    for (const refusals of slicesOf(describeFresh(reasons), 50)) this.#waiting.push({ ...nothing, refusals });
    const met = [...(await finishInSlices(this.#rows.countMet(rows)))];
    for (const some of slicesOf(met, 500)) this.#waiting.push({ ...nothing, rows: some });
  }
}

/** A script blocks the whole store, so one write is limited in size. */
function* slicesOf<T>(all: readonly (readonly [string, T])[], size: number): Generator<Record<string, T>> {
  for (let i = 0; i < all.length; i += size) yield Object.fromEntries(all.slice(i, i + size));
}

const nothing: RolloutBatch = { rows: {}, refusals: {}, lost: '' };

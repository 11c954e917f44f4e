import type { Cause } from './faults.ts';

export interface Health {
  readonly status: 'connecting' | 'ready' | 'away' | 'closed';
  /** Why it is away: the newest cause that says more than "not connected", if there was one. */
  readonly cause: Cause | undefined;
  /** When this state began, in milliseconds since the epoch. */
  readonly since: number;
}

/** A line for the log. */
export interface HealthLine extends Health {
  /** Calls of the last ten seconds, and how many of them failed. */
  readonly calls: number;
  readonly failed: number;
}

/** Away when calls have failed for so long without a success in between; at once if a permission is missing. */
const awayAfterMs = 1_000;
/** The window in which failed calls are counted. After one without a failure the store is back. */
const windowMs = 10_000;
/** Also away when so many calls of the window have failed, and at least this share of them. */
const awayFaults = 5;
const awayShare = 0.1;
const bucketMs = 1_000;
/** Maximum number of causes that are logged: they contain addresses, so there may be many. */
const mostLoggedCauses = 50;

interface Bucket {
  readonly at: number;
  calls: number;
  failed: number;
}

/**
 * Whether the store can be used, decided by the calls of the last seconds, rarely by a single one. Pure: time is passed in
 * (milliseconds since the epoch), log lines are passed out. docs/decisions/store-state.md has the table.
 */
export class StoreHealth {
  readonly #emit: (line: HealthLine) => void;
  #health: Health;
  #buckets: Bucket[] = [];
  /** The first fault since the last success. */
  #failingSince: number | undefined;
  #lastFault = Number.NEGATIVE_INFINITY;
  #lastSuccess = Number.NEGATIVE_INFINITY;
  #newest: Cause | undefined;
  #newestAt = Number.NEGATIVE_INFINITY;
  /** Texts that were logged in this state. */
  readonly #logged = new Set<string>();

  constructor(now: number, emit: (line: HealthLine) => void) {
    this.#emit = emit;
    this.#health = { status: 'connecting', cause: undefined, since: now };
  }

  get state(): Health {
    return this.#health;
  }

  succeed(now: number): void {
    this.#bucketAt(now).calls += 1;
    this.#lastSuccess = now;
    this.#failingSince = undefined;
    if (this.#health.status !== 'ready') this.tick(now);
  }

  fail(cause: Cause, now: number): void {
    this.#bucketAt(now).calls += 1;
    this.#bucketAt(now).failed += 1;
    this.#lastFault = now;
    this.#failingSince ??= now;
    // "Not connected", a cause without text, does not replace a recent one that says why.
    if (cause.text !== undefined || now - this.#newestAt >= windowMs) {
      this.#newest = cause;
      this.#newestAt = now;
    }
    this.tick(now);
    const { status, cause: known } = this.#health;
    if (status !== 'away' || cause.text === undefined || cause.text === known?.text) return;
    this.#health = { ...this.#health, cause };
    if (!this.#logged.has(cause.text) && this.#logged.size < mostLoggedCauses) this.#log(now);
  }

  /** Makes the changes that depend on time alone; to be called about once a second. */
  tick(now: number): void {
    const { status } = this.#health;
    if (status === 'closed') return;
    if (status !== 'away' && this.#isFailing(now)) this.#enter('away', this.#newest, now);
    else if (status === 'connecting' && this.#lastSuccess > this.#lastFault)
      this.#enter('ready', undefined, now);
    else if (status === 'away' && this.#hasRecovered(now)) this.#enter('ready', undefined, now);
  }

  close(now: number): void {
    this.#health = { status: 'closed', cause: undefined, since: now };
  }

  #isFailing(now: number): boolean {
    // Nothing has worked yet: one failure is enough.
    if (this.#health.status === 'connecting') return this.#failingSince !== undefined;
    const lacksRight = this.#newest?.word === 'noperm';
    if (this.#failingSince !== undefined && (lacksRight || now - this.#failingSince >= awayAfterMs))
      return true;
    const { calls, failed } = this.#counts(now);
    return failed >= awayFaults && failed >= calls * awayShare;
  }

  #hasRecovered(now: number): boolean {
    return this.#lastSuccess > this.#lastFault && now - this.#lastFault >= windowMs;
  }

  #enter(status: 'ready' | 'away', cause: Cause | undefined, now: number): void {
    this.#health = { status, cause, since: now };
    this.#logged.clear();
    this.#log(now);
  }

  #log(now: number): void {
    const { text } = this.#health.cause ?? {};
    if (text !== undefined) this.#logged.add(text);
    this.#emit({ ...this.#health, ...this.#counts(now) });
  }

  #counts(now: number): { readonly calls: number; readonly failed: number } {
    let [calls, failed] = [0, 0];
    for (const bucket of this.#buckets) {
      if (bucket.at <= now - windowMs) continue;
      calls += bucket.calls;
      failed += bucket.failed;
    }
    return { calls, failed };
  }

  #bucketAt(now: number): Bucket {
    const last = this.#buckets.at(-1);
    // Also when the clock was set back.
    if (last !== undefined && now - last.at < bucketMs) return last;
    const bucket = { at: now, calls: 0, failed: 0 };
    this.#buckets = [...this.#buckets.filter(({ at }) => at > now - windowMs), bucket];
    return bucket;
  }
}

import { ServerClock } from '../redis/server-clock.ts';
import type { ReadStamp } from './tag-store.ts';

/** Milliseconds above which the allowance for drift would cost more than asking the store. */
const maxDistanceMs = 60_000;
/** Until then the allowance for drift is a tenth of a millisecond: less than a client takes from one answer to its next question. */
const recentMs = 100;

/**
 * What this process knows of the store's clock, per marker: with every answer the store tells its time, so the store's
 * time of any moment of ours has a lower bound, whichever of the two came first, and however long this process was
 * stopped in between.
 */
export class StoreClock {
  readonly #nowMs: () => number;
  readonly #markers = new Map<number, { readonly epoch: string; readonly clock: ServerClock }>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** `askedAtMs`: the time before the question left. */
  hear(bucket: number, epoch: string, storeMicros: number, askedAtMs: number): void {
    let marker = this.#markers.get(bucket);
    if (marker?.epoch !== epoch) {
      marker = { epoch, clock: new ServerClock() };
      this.#markers.set(bucket, marker);
    }
    marker.clock.hear(storeMicros, askedAtMs, this.#nowMs());
  }

  readStampAt(bucket: number, startedAtMs: number): ReadStamp | null {
    const { epoch, clock } = this.#markers.get(bucket) ?? {};
    if (epoch === undefined || !clock?.wasHeard(startedAtMs, maxDistanceMs)) return null;
    return { epoch, startedAt: clock.atLeast(startedAtMs) };
  }

  /** Whether the store was heard so recently that a bound is as good as its own answer. */
  hasHeard(bucket: number): boolean {
    return this.#markers.get(bucket)?.clock.wasHeard(this.#nowMs(), recentMs) === true;
  }
}

import { driftPerMs, leastAt } from '../redis/server-clock.ts';
import type { ReadStamp } from './tag-store.ts';

/**
 * What this process knows of the store's clock, per marker: with every answer the store tells its time, and from the
 * moment that an answer is here its clock shows at least that time. So the store's time of any moment of ours has a
 * lower bound, whichever of the two came first, and however long this process was stopped in between.
 */
export interface StoreClock {
  /** `askedAtMs`: before the question left. */
  hear(bucket: number, epoch: string, storeMicros: number, askedAtMs: number): void;
  readStampAt(bucket: number, startedAtMs: number): ReadStamp | null;
  /** Whether it was heard so lately that a bound is as good as the store's own word. */
  hasHeard(bucket: number): boolean;
}

interface Heard {
  readonly epoch: string;
  readonly storeMicros: number;
  readonly atMs: number;
}

/** Beyond this distance the allowance for drift costs more than asking. */
const maxDistanceMs = 60_000;
/** Until then the allowance for drift is a tenth of a millisecond: less than a client takes from one answer to its next question. */
const recentMs = 100;

export function createStoreClock(nowMs: () => number): StoreClock {
  /** The one that bounds the store's time best: an answer that lay in our socket for a while says less than an older one. */
  const best = new Map<number, Heard>();
  const heardAtMs = new Map<number, number>();
  return {
    hear(bucket, epoch, storeMicros, askedAtMs) {
      const atMs = nowMs();
      heardAtMs.set(bucket, atMs);
      const known = best.get(bucket);
      if (known !== undefined && known.epoch === epoch) {
        const bound = boundAt(known, atMs);
        // More than the store can show by now: its clock was set back, and what it said before is void.
        const isVoid = bound > storeMicros + (atMs - askedAtMs) * (1000 + driftPerMs);
        const isOld = atMs - known.atMs > maxDistanceMs / 2;
        if (bound > storeMicros && !isVoid && !isOld) return;
      }
      best.set(bucket, { epoch, storeMicros, atMs });
    },
    readStampAt(bucket, startedAtMs) {
      const known = best.get(bucket);
      if (known === undefined || Math.abs(startedAtMs - known.atMs) > maxDistanceMs) return null;
      const startedAt = Math.floor(boundAt(known, startedAtMs));
      return { epoch: known.epoch, generation: null, startedAt };
    },
    hasHeard: (bucket) => nowMs() - (heardAtMs.get(bucket) ?? Number.NEGATIVE_INFINITY) <= recentMs,
  };
}

function boundAt({ storeMicros, atMs }: Heard, ms: number): number {
  return leastAt(storeMicros, ms - atMs);
}

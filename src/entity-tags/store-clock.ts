import type { ReadNote } from './tag-store.ts';

/**
 * What this process knows of the store's clock, per marker: with every answer the store tells its time, and from the
 * moment that an answer is here its clock shows at least that time. So the store's time of any moment of ours has a
 * lower bound, whichever of the two came first, and however long this process was stopped in between.
 */
export interface StoreClock {
  hear(bucket: number, epoch: string, storeMicros: number): void;
  noteAt(bucket: number, startedAtMs: number): ReadNote | null;
}

interface Heard {
  readonly epoch: string;
  readonly storeMicros: number;
  readonly atMs: number;
}

/** Clocks of two machines run equally fast to one part in a thousand (NTP slews by half of that at most). */
const driftPerMs = 1;
/** Beyond this distance the allowance for drift costs more than asking. */
const maxDistanceMs = 60_000;

export function createStoreClock(nowMs: () => number): StoreClock {
  const heard = new Map<number, Heard>();
  return {
    hear(bucket, epoch, storeMicros) {
      heard.set(bucket, { epoch, storeMicros, atMs: nowMs() });
    },
    noteAt(bucket, startedAtMs) {
      const last = heard.get(bucket);
      if (last === undefined) return null;
      const distanceMs = startedAtMs - last.atMs;
      if (Math.abs(distanceMs) > maxDistanceMs) return null;
      const startedAt = last.storeMicros + distanceMs * 1000 - Math.abs(distanceMs) * driftPerMs;
      return { epoch: last.epoch, generation: null, startedAt: Math.floor(startedAt) };
    },
  };
}

/** Milliseconds until the next start, for a worker whose places have seen so many ends in a row. */
const firstMs = 100;
const longestMs = 30_000;
/** Who has run so long did not end because of its start. */
const steadyMs = 60_000;

/** When a worker that ended is replaced: soon, and later each time while they do not last. */
export interface BackOff {
  /** Of a worker that ended `nowMs`, having been started `startedMs`. */
  delayMs(startedMs: number, nowMs: number): number;
}

export function createBackOff(): BackOff {
  let ends = 0;
  return {
    delayMs(startedMs, nowMs) {
      if (nowMs - startedMs >= steadyMs) ends = 0;
      return Math.min(firstMs * 2 ** ends++, longestMs);
    },
  };
}

/** In milliseconds; `docs/configuration.md` describes them. */
type TimeSettings = Readonly<Record<'lease' | 'sendBy' | 'storeTimeout' | 'responseTimeout', number>>;

/** Milliseconds. */
export interface EntityTagTimes {
  readonly leaseMs: number;
  /** The first byte of a write leaves within this time, counted from before its claim … */
  readonly firstByteByMs: number;
  /** … and the last one within this time from the first. */
  readonly sendWithinMs: number;
  /** Response deadline of a tracked write, from the start of its exchange. */
  readonly answerWithinMs: number;
  /** A read that took longer is not tagged. */
  readonly longestReadMs: number;
  /** A record that nothing touches is dropped after this time. */
  readonly recordExpiryMs: number;
  /** The same for a record that only clients without a verified token have touched. */
  readonly anonymousExpiryMs: number;
}

/** How far the store's clock and this process's clock may drift apart during one lease. */
const marginMs = 500;
const hourMs = 3600 * 1000;
const dayMs = 24 * hourMs;

/**
 * Derives times with `firstByteBy + answerWithin + store round trip + margin <= lease` and
 * `recordExpiry > longestRead`. Undefined: the lease is too short.
 */
export function entityTagTimes(settings: TimeSettings): EntityTagTimes | undefined {
  const { lease, sendBy, storeTimeout, responseTimeout } = settings;
  const outcomeByMs = lease - marginMs - storeTimeout;
  if (outcomeByMs <= sendBy) return undefined;
  // Half for each: so a write that is sent late and slowly still leaves within sendBy.
  const firstByteByMs = sendBy / 2;
  return {
    leaseMs: lease,
    firstByteByMs,
    sendWithinMs: sendBy - firstByteByMs,
    answerWithinMs: Math.min(responseTimeout, outcomeByMs - firstByteByMs),
    longestReadMs: Math.max(responseTimeout, lease) * 2,
    recordExpiryMs: Math.max(dayMs, responseTimeout * 4, lease * 4),
    anonymousExpiryMs: Math.max(hourMs, responseTimeout * 4, lease * 4),
  };
}

/** Settings from which the protocol's times are derived, in milliseconds. */
interface EntityTagTimeSettings {
  /** How long a claim keeps other writes of its resource waiting. Default of the product: 15000. */
  readonly leaseMs: number;
  /** Longest time from before the claim to the last byte of a write. Default of the product: 2000. */
  readonly sendByMs: number;
  /** Deadline of one call to the store. */
  readonly storeTimeoutMs: number;
  /** The upstream's response deadline for requests that are not tracked writes. */
  readonly responseTimeoutMs: number;
}

/** Milliseconds. */
export interface EntityTagTimes {
  readonly leaseMs: number;
  /** The first byte of a write leaves within this time from before its claim … */
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
 * Derives the times of the protocol, or says which relation the settings break:
 * `sendBy + answerWithin + store round trip + margin <= lease`, `recordExpiry > longestRead, lease`.
 */
export function entityTagTimes(
  settings: EntityTagTimeSettings,
): EntityTagTimes | { readonly problem: string } {
  const { leaseMs, sendByMs, storeTimeoutMs, responseTimeoutMs } = settings;
  const outcomeByMs = leaseMs - marginMs - storeTimeoutMs;
  if (outcomeByMs <= sendByMs) {
    return { problem: 'the lease must be longer than sendBy, the store timeout and 0.5s together' };
  }
  // Half for each: so a write that is sent late and slowly still leaves within sendBy.
  const firstByteByMs = sendByMs / 2;
  return {
    leaseMs,
    firstByteByMs,
    sendWithinMs: sendByMs - firstByteByMs,
    answerWithinMs: Math.min(responseTimeoutMs, outcomeByMs - firstByteByMs),
    longestReadMs: Math.max(responseTimeoutMs, leaseMs) * 2,
    recordExpiryMs: Math.max(dayMs, responseTimeoutMs * 4, leaseMs * 4),
    anonymousExpiryMs: Math.max(hourMs, responseTimeoutMs * 4, leaseMs * 4),
  };
}

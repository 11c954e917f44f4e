import type { Milliseconds } from './units.ts';

/** Milliseconds by which the store's clock and ours may disagree over one lease. */
const marginMs = 500;

export interface EntityTagTimes {
  /** Longest wait for the shop's whole answer to a tracked write, from the claim on. */
  readonly answerWithinMs: Milliseconds;
  /** Longest time after the last byte of a write in which the shop may still act on it. */
  readonly landsWithinMs: Milliseconds;
}

interface EntityTagSettings {
  readonly lease: Milliseconds;
  readonly sendBy: Milliseconds;
  readonly storeTimeout: Milliseconds;
  readonly responseTimeout: Milliseconds;
}

/**
 * Times of a write that holds a lease: what has left by `sendBy` has landed before the lease is over, and its outcome
 * is known early enough to be written down under the same lease. Undefined when the settings leave no room for that.
 */
export function entityTagTimes(settings: EntityTagSettings): EntityTagTimes | undefined {
  const { lease, sendBy, storeTimeout, responseTimeout } = settings;
  const outcomeBy = lease - marginMs - storeTimeout;
  if (outcomeBy <= sendBy) return undefined;
  return { answerWithinMs: Math.min(responseTimeout, outcomeBy), landsWithinMs: lease - marginMs - sendBy };
}

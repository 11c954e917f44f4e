import type { ForwardOutcome } from '../forwarding/passage.ts';

/**
 * What the shop did, as far as it can be told. `refused`: certainly nothing; `done`: what was asked; `unknown`: one of the
 * two (5xx, 3xx, 408, a reset, a time-out).
 */
export type ShopVerdict = 'refused' | 'done' | 'unknown';

export function verdictOf(outcome: ForwardOutcome): ShopVerdict {
  if (outcome.kind === 'unsent') return 'refused';
  if (outcome.kind === 'unknown') return 'unknown';
  const { status } = outcome;
  if (status >= 200 && status < 300) return 'done';
  return status >= 400 && status < 500 && status !== 408 ? 'refused' : 'unknown';
}

import type { ForwardOutcome } from '../upstream/hooks.ts';

/**
 * What the shop did, as far as it can be told. `refused`: certainly nothing; `failed`: a complete answer, and it was not
 * what was asked (5xx, 3xx, 408), whatever happened behind it; `done`: what was asked; `unknown`: no answer came to its end.
 */
export type ShopVerdict = 'refused' | 'failed' | 'done' | 'unknown';

export function verdictOf(outcome: ForwardOutcome): ShopVerdict {
  if (outcome.kind === 'unsent') return 'refused';
  if (outcome.kind === 'unknown') return 'unknown';
  const { status } = outcome;
  if (status < 200) return 'unknown';
  if (status < 300) return 'done';
  return status >= 400 && status < 500 && status !== 408 ? 'refused' : 'failed';
}

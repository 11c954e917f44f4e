import type { ForwardOutcome } from '../upstream/hooks.ts';
import type { WriteOutcome } from './tag-store.ts';

/**
 * What an exchange says about the state behind it.
 * - A complete 2xx is applied; 202 only promises it, 207 holds several results.
 * - A complete 4xx is refused; 408 is a time-out in disguise. The shop's own 412 or 428 shows that our idea of its tag
 *   was wrong: the tag goes, so that the next read learns the shop's anew, else nobody could ever write again.
 * - 3xx says nothing. 5xx may stand for anything, and may be followed by a late write.
 */
export function writeOutcome(outcome: ForwardOutcome): WriteOutcome {
  if (outcome.kind !== 'answered') return outcome.kind;
  const { status } = outcome;
  if (status === 202 || status === 408 || status >= 500 || status < 200) return 'unknown';
  if (status === 207 || status === 412 || status === 428) return 'spoilt';
  if (status < 300) return 'applied';
  return status < 400 ? 'spoilt' : 'refused';
}

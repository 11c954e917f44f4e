import { rejectionKind } from '../http/rejection.ts';
import type { ExchangeRecord } from '../telemetry/exchange-record.ts';

/**
 * Each exchange is one of these. `refused`: by a rule, with nothing broken; `observed`: would have been refused, and was
 * forwarded; `failed`: something broke here or in the shop (5xx, or a response that was cut off).
 */
export const outcomes = ['passed', 'refused', 'observed', 'failed'] as const;
export type Outcome = (typeof outcomes)[number];

type Ended = Pick<ExchangeRecord, 'decision' | 'status' | 'rejection' | 'observed'>;

export function outcomeOf({ decision, status, rejection, observed }: Ended): Outcome {
  if (decision !== 'aborted' && rejection !== undefined) {
    const kind = rejectionKind(rejection);
    if (kind === 'answer') return 'passed';
    return kind === 'outage' ? 'failed' : 'refused';
  }
  if (status >= 500 || (decision === 'aborted' && status !== 0)) return 'failed';
  if (decision === 'refused') return 'refused';
  return observed === undefined ? 'passed' : 'observed';
}

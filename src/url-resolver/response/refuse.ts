import { type Rejection, reject } from '../../http/rejection.ts';
import type { SourceFailure } from '../sources/verdict.ts';

/** A refusal that no cache outside may keep: the next request may fare better. */
const notToBeKept = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff'];

/** 422 of the contract: no `url`, an empty one, or an array. */
export const refuseMissing: Rejection = reject('url-missing', { fields: notToBeKept });

/** 502, 503 or 504: the source failed and there is no copy that may be given out. */
export function refuseFailure(failure: SourceFailure): Rejection {
  const { reason } = failure;
  switch (failure.fault) {
    case 'timeout':
      return reject('upstream-timeout', { reason, fields: notToBeKept });
    case 'overloaded':
      return reject('overloaded', { reason, retryAfterSeconds: 1, fields: notToBeKept });
    case 'invalid':
      return reject('upstream-invalid', { reason, fields: notToBeKept });
    case 'unreachable':
      return reject('upstream-unreachable', { reason, fields: notToBeKept });
  }
}

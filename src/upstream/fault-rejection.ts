import { type Rejection, reject } from '../http/rejection.ts';
import type { UpstreamFault } from './engine.ts';
import type { ForwardOutcome } from './hooks.ts';

/** Why an exchange failed: the engine's word, or ours when we ended it. */
export type ForwardFault = UpstreamFault['kind'] | 'timeout' | 'late';

/** What a client is told about a fault, when it can still be told anything. */
export function rejectionOfFault(fault: ForwardFault, answerBegun: boolean, cause?: unknown): Rejection {
  switch (fault) {
    case 'overloaded':
      return reject('overloaded', { reason: fault, retryAfterSeconds: 1 });
    case 'not-sent':
      // With a cause it was not the feature's clock that said no, but a request that could not be written.
      return cause === undefined
        ? reject('overloaded', { reason: fault, retryAfterSeconds: 1 })
        : reject('internal-error', { reason: fault });
    case 'connect-timeout':
    case 'timeout':
    case 'late':
      return reject('upstream-timeout', { reason: fault });
    case 'malformed':
      return reject('upstream-invalid', { reason: fault });
    case 'reset':
      return reject(answerBegun ? 'upstream-invalid' : 'upstream-unreachable', { reason: fault });
    case 'request-body':
      return reject('bad-request', { reason: 'body-cut' });
    case 'internal':
      return reject('internal-error', { reason: 'fault' });
    case 'unreachable':
    case 'aborted':
      return reject('upstream-unreachable', { reason: fault });
  }
}

/** What `onOutcome` is told about it: did a byte of the request leave? */
export function outcomeOfFault(fault: ForwardFault, wasSent: boolean): ForwardOutcome {
  if (wasSent && fault !== 'overloaded') return { kind: 'unknown', fault };
  return { kind: 'unsent', fault: fault === 'timeout' || fault === 'late' ? 'aborted' : fault };
}

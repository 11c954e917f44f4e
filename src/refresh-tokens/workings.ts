import type { RefreshTokenEvent, RefreshTokensOptions } from './options.ts';
import type { RetryQueue } from './retry-queue.ts';
import type { Digests } from './token-digest.ts';

/** What the parts of this feature share. */
export interface Workings
  extends Required<
    Pick<
      RefreshTokensOptions,
      | 'store'
      | 'subjectOf'
      | 'lifetimeMs'
      | 'answerWithinMs'
      | 'marginMs'
      | 'claimMs'
      | 'answerBytes'
      | 'monotonicNow'
      | 'replay'
      | 'leewayMs'
    >
  > {
  readonly digests: Digests;
  readonly retries: RetryQueue;
  emit(event: RefreshTokenEvent): void;
}

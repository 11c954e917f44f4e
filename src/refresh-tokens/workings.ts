import type { RefreshTokenEvent, RefreshTokensOptions } from './options.ts';
import type { Digests } from './token-digest.ts';
import type { Unwritten } from './unwritten.ts';

/** What the parts of this feature share. */
export interface Workings
  extends Required<
    Pick<
      RefreshTokensOptions,
      'store' | 'subjectOf' | 'lifetimeMs' | 'answerWithinMs' | 'marginMs' | 'answerBytes' | 'monotonicNow'
    >
  > {
  readonly digests: Digests;
  readonly unwritten: Unwritten;
  emit(event: RefreshTokenEvent): void;
}

import { configurations } from './configuration.ts';
import { credentials } from './credentials.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { pairShop } from './pair-shop.ts';
import { requestTargets } from './request-targets.ts';
import { tokenReaders } from './token-readers.ts';
import { wire } from './wire.ts';

/** All targets. Kept regressions refer to them by name. */
export const targets: readonly FuzzTarget[] = [
  ...requestTargets,
  ...credentials,
  ...configurations,
  tokenReaders,
  pairShop,
  wire,
];

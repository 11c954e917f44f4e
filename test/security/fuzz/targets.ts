import { configurations } from './configuration.ts';
import { credentials } from './credentials.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { pairShop } from './pair-shop.ts';
import { requestTargets } from './request-targets.ts';
import { tokenReaders } from './token-readers.ts';
import { wire } from './wire.ts';

/** Everything that is fuzzed; names are those of the regressions. */
export const targets: readonly FuzzTarget[] = [
  ...requestTargets,
  ...credentials,
  ...configurations,
  tokenReaders,
  pairShop,
  wire,
];

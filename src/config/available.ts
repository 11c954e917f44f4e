import { isDeepStrictEqual } from 'node:util';
import type { SettingProblem } from './issues.ts';
import type { PartialConfig } from './schema.ts';

interface UnavailableSetting {
  readonly path: readonly string[];
  /** The one value that does what it says, as it is after parsing. */
  readonly only: unknown;
}

/** Settings whose feature is not there yet. They are understood, but must not pretend: any other value is an error. */
export const unavailableSettings: readonly UnavailableSetting[] = [];

export function availabilityProblems(config: PartialConfig): SettingProblem[] {
  return unavailableSettings.flatMap(({ path, only }) => {
    const value = valueAt(config, path);
    const isDefault = value === undefined || isDeepStrictEqual(value, only);
    return isDefault
      ? []
      : [{ path, text: `is not available in this version; leave it at ${JSON.stringify(only)}` }];
  });
}

function valueAt(config: unknown, path: readonly string[]): unknown {
  let value = config;
  for (const key of path) value = (value as Record<string, unknown> | false | undefined)?.[key as never];
  return value;
}

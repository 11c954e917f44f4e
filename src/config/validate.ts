import { issueText, type SettingProblem, settingProblems, unknownKey } from './issues.ts';
import { checkRules } from './rules.ts';
import { configSchema, type PartialConfig } from './schema.ts';

export interface ValidatedConfig {
  /** The sections that are valid; every one of them when there is no problem of severity error. */
  readonly config: PartialConfig;
  readonly problems: readonly SettingProblem[];
}

/**
 * Checks plain data against the whole schema, section by section, so that a mistake in one hides none in another.
 * `unknown` names settings whose value could not be had; they are reported already.
 */
export function validateConfig(plain: unknown, unknown: readonly SettingProblem[] = []): ValidatedConfig {
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
    return {
      config: {},
      problems: [...unknown, { path: [], text: 'the file must be a map of keys and values' }],
    };
  }
  const given = plain as Readonly<Record<string, unknown>>;
  const config: Record<string, unknown> = {};
  const problems: SettingProblem[] = [];
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(configSchema.shape, key)) problems.push(unknownKey([], key));
  }
  for (const [key, schema] of Object.entries(configSchema.shape)) {
    const result = schema.safeParse(given[key], { error: issueText });
    if (!result.success) problems.push(...settingProblems(result.error.issues, [key]));
    else if (result.data !== undefined && !unknown.some(({ path }) => path[0] === key))
      config[key] = result.data;
  }
  // What follows from an unknown value is said neither of itself nor of what holds it.
  const isReported = ({ path }: SettingProblem) =>
    unknown.some((known) => startsWith(path, known.path) || startsWith(known.path, path));
  const own = problems.filter((problem) => !isReported(problem));
  return { config, problems: [...unknown, ...own, ...checkRules(config)] };
}

function startsWith(path: readonly unknown[], start: readonly unknown[]): boolean {
  return start.every((step, index) => path[index] === step);
}

import type { SettingProblem } from './issues.ts';
import { authProblems } from './rules/auth-rules.ts';
import {
  entityTagResourceProblems,
  entityTagTimeProblems,
  refreshTokenProblems,
  resolverProblems,
  resolverWarnings,
} from './rules/feature-rules.ts';
import {
  adminProblems,
  failoverWarnings,
  loopProblems,
  modeProblems,
  portProblems,
  upstreamWarnings,
  workerProblems,
} from './rules/listener-rules.ts';
import type { Config, PartialConfig } from './schema.ts';

interface Rule {
  readonly sections: readonly (keyof Config)[];
  judge(config: Config): SettingProblem[];
}

/** What no section can check alone. A rule is asked as soon as its own sections are valid. */
const rules: readonly Rule[] = [
  rule(['mode'], modeProblems),
  rule(['admin'], adminProblems),
  rule(['admin', 'listen'], portProblems),
  rule(['listen', 'upstream'], loopProblems),
  rule(['upstream'], upstreamWarnings),
  rule(['workers', 'store'], workerProblems),
  rule(['store'], failoverWarnings),
  rule(['auth'], authProblems),
  rule(['entityTags', 'store', 'upstream'], entityTagTimeProblems),
  rule(['entityTags'], entityTagResourceProblems),
  rule(['urlResolver', 'protectedResourcesPath'], resolverProblems),
  rule(['urlResolver', 'upstream'], resolverWarnings),
  rule(['refreshTokens'], refreshTokenProblems),
];

export function checkRules(config: PartialConfig): SettingProblem[] {
  return rules.flatMap(({ sections, judge }) =>
    sections.every((section) => config[section] !== undefined) ? judge(config as Config) : [],
  );
}

function rule<Key extends keyof Config>(
  sections: readonly Key[],
  judge: (config: Pick<Config, Key>) => SettingProblem[],
): Rule {
  return { sections, judge };
}

import type { z } from 'zod';
import { nearestName } from '../lib/nearest-name.ts';
import type { Problem } from '../lib/problem.ts';
import { keysAt, type SettingPath } from './json-schema.ts';

/** What is wrong with one setting. */
export interface SettingProblem {
  readonly path: SettingPath;
  readonly text: string;
  readonly severity?: Problem['severity'];
  /** Point at the key instead of the value. */
  readonly at?: 'key';
}

/** `at`: keys with dots between them, or keys and indexes. */
export function mistake(at: string | SettingPath, text: string): SettingProblem {
  return { path: typeof at === 'string' ? at.split('.') : at, text };
}

export function warning(at: string | SettingPath, text: string): SettingProblem {
  return { ...mistake(at, text), severity: 'warning' };
}

type Issue = z.core.$ZodIssue;

const nouns: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a whole number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  tuple: 'a list',
  object: 'a map of keys and values',
};

/** The text of an issue for which the schema has none; never contains the value. */
export function issueText(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined) return 'is required';
  if (issue.input === null) return 'has no value';
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${nouns[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.join(', ')}`;
    case 'too_small':
      if (issue.origin === 'string') return 'must not be empty';
      return issue.origin === 'array' ? 'must have at least one item' : `must be at least ${issue.minimum}`;
    case 'too_big':
      return `must be at most ${issue.maximum}${issue.origin === 'array' ? ' items' : ''}`;
    default:
      return undefined;
  }
}

/** Converts the issues of a section to problems, with the section's path in front. */
export function settingProblems(issues: readonly Issue[], below: SettingPath): SettingProblem[] {
  return issues.flatMap((issue) => {
    const path = [...below, ...(issue.path as (string | number)[])];
    if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key));
    if (issue.code === 'invalid_union') return unionProblems(issue, path);
    return [{ path, text: issue.message }];
  });
}

/** Removed keys of 0.1.0, by their last two steps -> what applies now. */
const removedKeys: ReadonlyMap<string, string> = new Map([
  ['admin.edit', 'the list is edited where it comes from'],
  ['cors.methods', 'all methods of the API are allowed'],
  ['cors.fields', 'the fields that a preflight asks for are allowed'],
  ['cors.maxAge', 'a preflight is kept for ten minutes'],
  ['errors.typeBase', 'the type of a refusal is a URN'],
  ['fields.expiresIn', 'nothing reads it'],
  ['introspection.inactiveTtl', 'it is 5s, at most ttl'],
  ['introspection.maxTokens', '10,000 answers are kept'],
  ['limits.bodyRate', 'it is 500 bytes a second'],
  ['resources.freshFor', 'a read always asks the shop'],
  ['rollout.clients', 'clients are named by their application and User-Agent'],
  ['rollout.clientId', 'the application is the claim client_id, else azp or cid'],
  ['rollout.interval', 'counts are written every 5 s'],
  ['store.owner', 'give each shop and stage a store.prefix of its own'],
  ['tls.ciphers', 'TLS 1.2 has the suites of RFC 9325 section 4.2'],
  ['upstream.engine', 'there is one HTTP client'],
  ['urlResolver.defaultLocale', 'the first of urlResolver.locales is the default'],
  ['urlResolver.envelope', 'only the form of a Spryker shop is cached'],
  ['urlResolver.learn', 'mappings come from the resolver alone'],
]);

export function unknownKey(path: SettingPath, key: string): SettingProblem {
  const section = path.findLast((step) => typeof step === 'string');
  const now = removedKeys.get(`${section}.${key}`);
  if (now !== undefined)
    return { path: [...path, key], text: `is no longer a key: ${now}; remove it`, at: 'key' };
  const near = nearestName(key, keysAt(path));
  const text =
    near === undefined ? 'is not a known key; remove it' : `is not a known key; did you mean ${near}?`;
  return { path: [...path, key], text, at: 'key' };
}

/** The problems of the alternative that was most likely meant: a mistake inside a map does not concern the others. */
function unionProblems(
  issue: Extract<Issue, { code: 'invalid_union' }>,
  path: SettingPath,
): SettingProblem[] {
  const isOtherForm = (branch: readonly Issue[]) =>
    branch.some(
      ({ code, path: at }) => at.length === 0 && (code === 'invalid_type' || code === 'invalid_value'),
    );
  const meant = issue.errors.filter((branch) => !isOtherForm(branch));
  const only = meant.length === 1 ? meant[0] : undefined;
  if (only?.some((one) => one.path.length > 0 || 'keys' in one)) return settingProblems(only, path);
  if (issue.message !== 'Invalid input') return [{ path, text: issue.message }];
  if (only?.some(({ message }) => !message.startsWith('must be ')))
    return settingProblems(only.slice(0, 1), path);
  const texts = issue.errors.flatMap((branch) => settingProblems(branch, []).map(({ text }) => text));
  if (texts.includes('has no value')) return [{ path, text: 'has no value' }];
  const forms = [...new Set(texts)].map((text) => text.replace(/^must be /, ''));
  const constants = forms.filter((form) => /^(false|auto|none|keep|upstream)$/.test(form));
  const others = forms.filter((form) => !constants.includes(form));
  return [{ path, text: `must be ${[...others, ...constants].join(', or ')}` }];
}

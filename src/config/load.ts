import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isObject } from '../lib/json.ts';
import { hasErrors, type Problem, sortProblems } from '../lib/problem.ts';
import { decodeText, readSecret, readSettledFile } from '../lib/watched-file.ts';
import { defaultConfigFiles, maxConfigBytes, referenceDefaults } from './defaults.ts';
import { issueText, type SettingProblem, settingProblems, unknownKey } from './issues.ts';
import { type ConfigFile, type FileValidators, readNamedFiles, resolveNamedFiles } from './named-files.ts';
import { checkRules } from './rules.ts';
import { type Config, configSchema, type PartialConfig } from './schema.ts';
import {
  parseSourceDocument,
  type ReferenceSources,
  readPlainValue,
  substituteReferences,
} from './source-document.ts';

interface LoadOptions {
  /** As given by `--config`; left out: the first of `defaultConfigFiles` that is there. */
  readonly file?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly validators?: FileValidators;
}

export interface LoadedConfig {
  /** Complete and deeply frozen; file names are absolute. */
  readonly config: Config;
  readonly files: readonly ConfigFile[];
  readonly warnings: readonly Problem[];
  /** Absolute paths of the files that `${file:…}` names, with what was read of them. */
  readonly secretFiles: ReadonlyMap<string, Buffer>;
  /** The same text of the configuration over what those files, and those that it names, hold now. */
  reread(): Promise<LoadedConfig | RefusedConfig>;
}

export interface RefusedConfig {
  /** All of them, warnings too, in the order of reading. */
  readonly problems: readonly Problem[];
  readonly files: readonly ConfigFile[];
}

/** Reads and checks the configuration and every file that it names: all problems at once. Never throws on content. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig | RefusedConfig> {
  const name = options.file ?? defaultConfigFiles.find((file) => existsSync(resolve(options.cwd, file)));
  if (name === undefined) return refused(defaultConfigFiles[0], noConfigText());
  const file: ConfigFile = { role: 'config', path: resolve(options.cwd, name), name };
  const read = await readSettledFile(file.path, { maxBytes: maxConfigBytes });
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  if ('fault' in decoded) return refused(name, `the configuration cannot be read: ${decoded.fault}`);
  return validateText({ ...file, text: decoded.text }, options);
}

async function validateText(
  file: ConfigFile & { text: string },
  options: LoadOptions,
): Promise<LoadedConfig | RefusedConfig> {
  const document = parseSourceDocument(file.text, file.name);
  if (document.problems.length > 0) return { problems: sortProblems(document.problems), files: [file] };
  if (document.root === null) return refused(file.name, 'the file is empty', [file]);
  const secretFiles = new Map<string, Buffer>();
  const sources: ReferenceSources = {
    variables: options.env,
    readFile(name) {
      const path = resolve(dirname(file.path), name);
      const read = readSecret(path);
      if ('bytes' in read) secretFiles.set(path, read.bytes);
      return read;
    },
  };
  const plain = readPlainValue(document.root, sources);
  const checked = validateConfig(withReferenceDefaults(plain.value, sources), plain.problems);
  const named = await readNamedFiles(checked.config, file, options.validators ?? {}, document.textAt);
  const settings = [...checked.problems, ...named.settings].map(({ path, text, ...more }) =>
    document.problemAt(path, path.length === 0 ? text : `${settingName(path)} ${text}`, more),
  );
  const problems = [...sortProblems(settings), ...sortProblems(named.contents)];
  const files = [file, ...named.files];
  if (hasErrors(problems)) return { problems, files };
  const config = resolveNamedFiles(checked.config as Config, file.path);
  return {
    config: deepFreeze(config),
    files,
    warnings: problems,
    secretFiles,
    // What features follow by themselves is theirs to check.
    reread: () => validateText(file, { ...options, validators: {} }),
  };
}

/** Puts the defaults that are references themselves where the key is left out. */
function withReferenceDefaults(plain: unknown, sources: ReferenceSources): unknown {
  if (!isObject(plain)) return plain;
  const filled: Record<string, unknown> = Object.assign(Object.create(null), plain);
  for (const [section, references] of Object.entries(referenceDefaults)) {
    for (const [key, reference] of Object.entries(references)) {
      const given = Object.hasOwn(filled, section) ? filled[section] : {};
      if (!isObject(given) || Object.hasOwn(given, key)) continue;
      const { text } = substituteReferences(reference, sources);
      filled[section] = Object.assign(Object.create(null), given, { [key]: text });
    }
  }
  return filled;
}

/** `auth.keys.files[0]` */
function settingName(path: readonly (string | number)[]): string {
  const name = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${printable(step)}`)).join('');
  return name.replace(/^\./, '');
}

function printable(key: string): string {
  return /^[\w-]{1,80}$/.test(key) ? key : JSON.stringify(key.slice(0, 80));
}

function noConfigText(): string {
  return `there is no configuration: neither ${defaultConfigFiles.join(' nor ')} exists; name one with --config FILE`;
}

function refused(file: string, text: string, files: readonly ConfigFile[] = []): RefusedConfig {
  return { problems: [{ file, line: 1, column: 1, severity: 'error', text }], files };
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    for (const child of Object.values(value)) deepFreeze(child);
    Object.freeze(value);
  }
  return value;
}

interface ValidatedConfig {
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
    if (!result.success)
      for (const problem of settingProblems(result.error.issues, [key])) problems.push(problem);
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

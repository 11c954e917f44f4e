import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isObject } from '../lib/json.ts';
import { hasErrors, type Problem, sortProblems } from '../lib/problem.ts';
import { decodeText, readSecret, readStableFile } from '../lib/watched-file.ts';
import { defaultConfigFiles, defaultUrls, maxConfigBytes } from './defaults.ts';
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
  /** Value of `--config`. Default: the first of `defaultConfigFiles` that exists. */
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
  /** Absolute path of each file that `${file:…}` names -> its content. */
  readonly secretFiles: ReadonlyMap<string, Buffer>;
  /** Validates the same text of the configuration again, with the current content of the files in it. */
  reread(): Promise<LoadedConfig | RefusedConfig>;
  /** Reads the configuration file again. */
  reload(): Promise<LoadedConfig | RefusedConfig>;
}

export interface RefusedConfig {
  /** All problems, with warnings, in the order of the text. */
  readonly problems: readonly Problem[];
  readonly files: readonly ConfigFile[];
  readonly validSections?: PartialConfig;
}

/**
 * Reads and checks the configuration and every file that it names, and reports all problems at once. Content never makes
 * it throw.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig | RefusedConfig> {
  const name = options.file ?? defaultConfigFiles.find((file) => existsSync(resolve(options.cwd, file)));
  if (name === undefined) {
    const text = `there is no configuration: neither ${defaultConfigFiles.join(' nor ')} exists; name one with --config FILE`;
    return refused(defaultConfigFiles[0], text);
  }
  const file: ConfigFile = { role: 'config', path: resolve(options.cwd, name), name };
  const read = await readStableFile(file.path, maxConfigBytes);
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
  const checked = validateConfig(withDefaultUrls(plain.value, sources), plain.problems);
  const named = await readNamedFiles(checked.config, file, options.validators ?? {}, document.textAt);
  const settings = [...checked.problems, ...named.settings].map(({ path, text, ...more }) =>
    document.problemAt(path, path.length === 0 ? text : `${settingName(path)} ${text}`, more),
  );
  const problems = [...sortProblems(settings), ...sortProblems(named.contents)];
  const files = [file, ...named.files];
  if (hasErrors(problems)) return { problems, files, validSections: checked.config };
  const config = resolveNamedFiles(checked.config as Config, file.path);
  return {
    config: deepFreeze(config),
    files,
    warnings: problems,
    secretFiles,
    // Without validators: features check their watched files themselves.
    reread: () => validateText(file, { ...options, validators: {} }),
    reload: () => loadConfig({ ...options, file: file.name, validators: {} }),
  };
}

function withDefaultUrls(plain: unknown, sources: ReferenceSources): unknown {
  if (!isObject(plain)) return plain;
  const filled: Record<string, unknown> = Object.assign(Object.create(null), plain);
  for (const [section, reference] of Object.entries(defaultUrls)) {
    const given = Object.hasOwn(filled, section) ? filled[section] : {};
    if (!isObject(given) || Object.hasOwn(given, 'url')) continue;
    const { text: url } = substituteReferences(reference, sources);
    filled[section] = Object.assign(Object.create(null), given, { url });
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

/**
 * Checks plain data against the whole schema, section by section, so that a mistake in one section hides none in another.
 * `unknown`: settings whose value could not be read, already reported. Exported for its tests.
 */
export function validateConfig(plain: unknown, unknown: readonly SettingProblem[] = []) {
  if (!isObject(plain)) {
    const text = 'the file must be a map of keys and values';
    return { config: {} as PartialConfig, problems: [...unknown, { path: [], text }] };
  }
  const config: Record<string, unknown> = {};
  const problems: SettingProblem[] = [];
  for (const key of Object.keys(plain)) {
    if (!Object.hasOwn(configSchema.shape, key)) problems.push(unknownKey([], key));
  }
  for (const [key, schema] of Object.entries(configSchema.shape)) {
    const result = schema.safeParse(plain[key], { error: issueText });
    if (!result.success)
      for (const problem of settingProblems(result.error.issues, [key])) problems.push(problem);
    else if (result.data !== undefined && !unknown.some(({ path }) => path[0] === key))
      config[key] = result.data;
  }
  // An unreadable value is reported once: not again for the setting itself, nor for the settings around it.
  const isReported = ({ path }: SettingProblem) =>
    unknown.some((known) => startsWith(path, known.path) || startsWith(known.path, path));
  const own = problems.filter((problem) => !isReported(problem));
  const broken = checkRules(config);
  // A section that breaks a rule is left out: features are made from valid sections only, even to check their files.
  for (const { path, severity = 'error' } of broken) if (severity === 'error') delete config[String(path[0])];
  /** All sections are valid if no problem is an error. */
  return { config: config as PartialConfig, problems: [...unknown, ...own, ...broken] };
}

function startsWith(path: readonly unknown[], start: readonly unknown[]): boolean {
  return start.every((step, index) => path[index] === step);
}

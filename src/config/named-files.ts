import { dirname, join, resolve } from 'node:path';
import type { Eventually } from '../lib/eventually.ts';
import type { Problem } from '../lib/problem.ts';
import { checkReadable, decodeText, readStableFile } from '../lib/watched-file.ts';
import { certificateProblems } from './certificates.ts';
import { listIssuers } from './issuers.ts';
import type { SettingProblem } from './issues.ts';
import type { SettingPath } from './json-schema.ts';
import type { Config, PartialConfig } from './schema.ts';

const pemSections = ['listen', 'upstream', 'store'] as const;
const pemNames = ['ca', 'cert', 'key'] as const;
/** A PEM file has the role of its setting, such as `listen.tls.cert`. */
type PemRole = `${(typeof pemSections)[number]}.tls.${(typeof pemNames)[number]}`;
type FileRole = 'config' | 'protected-resources' | 'key' | 'mapping' | PemRole;

/** A file that the configuration names, as it was checked. */
export interface ConfigFile {
  readonly role: FileRole;
  /** Absolute. */
  readonly path: string;
  /** The file name in problems, as the user would give it. */
  readonly name: string;
  /** Content of the protected list and of certificates; features read the other files themselves. */
  readonly text?: string;
}

/** Checks of the content of files, which the features provide. */
export interface FileValidators {
  readonly protectedResources?: (
    text: string,
    name: string,
    config: PartialConfig,
  ) => Eventually<readonly Problem[]>;
  /** Checks key files together; a problem without a file concerns all of them. */
  readonly keyFiles?: (
    paths: readonly string[],
    algorithms: readonly string[],
  ) => Promise<readonly { readonly file: string | undefined; readonly text: string }[]>;
  readonly mapping?: (path: string, name: string, config: PartialConfig) => Promise<readonly Problem[]>;
}

interface NamedFile {
  readonly role: FileRole;
  readonly value: string;
  /** Path of the file name in a validated configuration. */
  readonly at: SettingPath;
  /** Path of the file name in the file, for problems. */
  readonly setting: SettingPath;
}

export const maxNamedFileBytes = 16 * 1024 * 1024;

/** Settings with the name of one file. */
const fileSettings: readonly (readonly [FileRole, SettingPath])[] = [
  ['protected-resources', ['protectedResources']],
  ...pemSections.flatMap((section) =>
    pemNames.map((name) => [`${section}.tls.${name}`, [section, 'tls', name]] as const),
  ),
];

function* listNamedFiles(config: PartialConfig): Generator<NamedFile> {
  const { auth, urlResolver } = config;
  for (const [role, at] of fileSettings) {
    const value = valueAt(config, at);
    if (typeof value === 'string') yield { role, value, at, setting: at };
  }
  for (const { at, files } of keyFilesOf(auth)) {
    for (const [index, value] of files.entries())
      yield { role: 'key', value, at: [...at, index], setting: [...at, index] };
  }
  const value = urlResolver ? urlResolver.source.file : undefined;
  const setting = ['urlResolver', 'source'];
  if (value !== undefined) yield { role: 'mapping', value, at: [...setting, 'file'], setting };
}

function valueAt(config: unknown, at: SettingPath): unknown {
  return at.reduce<unknown>((value, step) => Object(value)[step], config);
}

function keyFilesOf(auth: PartialConfig['auth']) {
  return (auth === undefined ? [] : listIssuers(auth)).flatMap(({ path, keys, algorithms }) =>
    keys !== undefined && 'files' in keys
      ? { at: [...path, 'keys', 'files'], files: keys.files, algorithms }
      : [],
  );
}

/**
 * Reads and checks the files that a configuration names; relative names start at the configuration file. `textAt`: the text of a
 * setting in the configuration file, with its references. Problems name a file by this text, since a value may be a secret in
 * the wrong setting.
 */
export async function readNamedFiles(
  config: PartialConfig,
  configFile: { readonly path: string; readonly name: string },
  validators: FileValidators,
  textAt: (setting: SettingPath) => string | undefined,
) {
  const read = await Promise.all(
    Array.from(listNamedFiles(config), async ({ setting, role, value }) => {
      const file: ConfigFile = { role, ...nameFile(value, configFile) };
      const result = await validateFile(file, config, validators);
      const written = textAt(setting);
      const shown = written?.includes('${') ? written : file.name;
      const fault = 'fault' in result ? [{ path: setting, text: `names ${shown}: ${result.fault}` }] : [];
      const { text, problems = [] } = 'fault' in result ? {} : result;
      return { file: text === undefined ? file : { ...file, text }, fault, problems };
    }),
  );
  const files = read.map(({ file }) => file);
  const faults = read.flatMap(({ fault }) => fault);
  const keys = faults.length === 0 ? await validateKeyFiles(config, configFile, validators) : [];
  return {
    files,
    /** Problems of the settings that name the files. */
    settings: [...faults, ...keys, ...certificateProblems(files)],
    /** Problems of the files' own content. */
    contents: read.flatMap(({ problems }) => problems),
  };
}

async function validateFile(
  { role, path, name }: ConfigFile,
  config: PartialConfig,
  validators: FileValidators,
): Promise<{ text?: string; problems?: readonly Problem[] | undefined } | { fault: string }> {
  if (role === 'mapping' || role === 'key') {
    const fault = await checkReadable(path);
    if (fault !== undefined) return { fault };
    return role === 'key' ? {} : { problems: await validators.mapping?.(path, name, config) };
  }
  const read = await readStableFile(path, maxNamedFileBytes);
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  if ('fault' in decoded || role !== 'protected-resources') return decoded;
  const { text } = decoded;
  return { text, problems: await validators.protectedResources?.(text, name, config) };
}

/** The key files of an issuer are checked together, since two of them may have the same `kid`. */
async function validateKeyFiles(
  { auth }: PartialConfig,
  configFile: { readonly path: string; readonly name: string },
  validators: FileValidators,
): Promise<SettingProblem[]> {
  const found = keyFilesOf(auth).map(async ({ at, files, algorithms }) => {
    const named = files.map((file) => nameFile(file, configFile));
    const paths = named.map(({ path }) => path);
    const problems = (await validators.keyFiles?.(paths, algorithms)) ?? [];
    return problems.map(({ file, text }): SettingProblem => {
      if (file === undefined) return { path: at, text: `cannot be used: ${text}` };
      const index = paths.indexOf(file);
      return { path: [...at, index], text: `names ${named[index]?.name}: ${text}` };
    });
  });
  return (await Promise.all(found)).flat();
}

/** The absolute path of a file in the configuration, and its name as the user would give it. */
function nameFile(value: string, configFile: { readonly path: string; readonly name: string }) {
  const path = resolve(dirname(configFile.path), value);
  return { path, name: path === value ? value : join(dirname(configFile.name), value) };
}

/** The configuration with absolute paths of files. */
export function resolveNamedFiles(config: Config, configPath: string): Config {
  const resolved = structuredClone(config);
  for (const { value, at } of listNamedFiles(config)) {
    const parent = valueAt(resolved, at.slice(0, -1)) as Record<string | number, string>;
    parent[at.at(-1) ?? ''] = resolve(dirname(configPath), value);
  }
  return resolved;
}

import { dirname, join, resolve } from 'node:path';
import type { Problem } from '../lib/problem.ts';
import { checkReadable, decodeText, readSettledFile } from '../lib/watched-file.ts';
import { certificateProblems } from './certificates.ts';
import { listIssuers } from './issuers.ts';
import type { SettingProblem } from './issues.ts';
import type { SettingPath } from './json-schema.ts';
import type { Config, PartialConfig } from './schema.ts';
import type { KeysConfig } from './sections/auth.ts';

type FileRole =
  | 'config'
  | 'protected-resources'
  | 'key'
  | 'mapping'
  | 'certificate'
  | 'certificate-key'
  | 'upstream-ca'
  | 'upstream-certificate'
  | 'upstream-certificate-key'
  | 'store-tls';

/** A file that the configuration names, as it was checked. */
export interface ConfigFile {
  readonly role: FileRole;
  /** Absolute. */
  readonly path: string;
  /** Name in problems, as the user would give it. */
  readonly name: string;
  /** Content of the protected list and of certificates; features read the other files themselves. */
  readonly text?: string;
}

/** Checks of the content of files, which the features provide. */
export interface FileValidators {
  readonly protectedResources?: (text: string, name: string, config: PartialConfig) => readonly Problem[];
  /** Checks key files together; a problem without a file is in all of them. */
  readonly keyFiles?: (
    paths: readonly string[],
    algorithms: readonly string[],
  ) => Promise<readonly { readonly file: string | undefined; readonly text: string }[]>;
  readonly mapping?: (path: string, name: string, config: PartialConfig) => Promise<readonly Problem[]>;
}

interface NamedFile {
  readonly setting: SettingPath;
  readonly role: FileRole;
  readonly value: string;
}

export const maxNamedFileBytes = 16 * 1024 * 1024;

/** Every file that the valid sections name. */
function listNamedFiles({
  listen,
  upstream,
  protectedResources,
  auth,
  urlResolver,
  store,
}: PartialConfig): NamedFile[] {
  const files: NamedFile[] = [];
  const add = (role: FileRole, value: string | undefined, ...setting: SettingPath) => {
    if (value !== undefined) files.push({ role, value, setting });
  };
  add('certificate', listen?.tls?.cert, 'listen', 'tls', 'cert');
  add('certificate-key', listen?.tls?.key, 'listen', 'tls', 'key');
  add('upstream-ca', upstream?.tls?.ca, 'upstream', 'tls', 'ca');
  add('upstream-certificate', upstream?.tls?.cert, 'upstream', 'tls', 'cert');
  add('upstream-certificate-key', upstream?.tls?.key, 'upstream', 'tls', 'key');
  add('protected-resources', protectedResources, 'protectedResources');
  for (const { path, keys } of auth === undefined ? [] : listIssuers(auth)) {
    if (keys === undefined || !('files' in keys)) continue;
    for (const [index, file] of keys.files.entries()) add('key', file, ...path, 'keys', 'files', index);
  }
  for (const part of ['ca', 'cert', 'key'] as const)
    add('store-tls', store?.tls?.[part], 'store', 'tls', part);
  if (urlResolver) add('mapping', urlResolver.source.file, 'urlResolver', 'source');
  return files;
}

interface ReadNamedFiles {
  readonly files: readonly ConfigFile[];
  /** Of the settings that name the files. */
  readonly settings: readonly SettingProblem[];
  /** Of the files' own content. */
  readonly contents: readonly Problem[];
}

/**
 * Reads and checks the files that a configuration names; relative names start at the configuration file. `textAt`: the text of a
 * setting in that file, with its references. Problems name a file by it, since a value may be a secret in the wrong place.
 */
export async function readNamedFiles(
  config: PartialConfig,
  configFile: { readonly path: string; readonly name: string },
  validators: FileValidators,
  textAt: (setting: SettingPath) => string | undefined,
): Promise<ReadNamedFiles> {
  const read = await Promise.all(
    listNamedFiles(config).map(async ({ setting, role, value }) => {
      const file = { role, ...nameFile(value, configFile) };
      const result = await validateFile(file, config, validators);
      const standing = textAt(setting);
      const shown = standing?.includes('${') ? standing : file.name;
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
    settings: [...faults, ...keys, ...certificateProblems(files, config)],
    contents: read.flatMap(({ problems }) => problems),
  };
}

type FileValidation =
  | { readonly text?: string; readonly problems: readonly Problem[] }
  | { readonly fault: string };

async function validateFile(
  { role, path, name }: ConfigFile,
  config: PartialConfig,
  validators: FileValidators,
): Promise<FileValidation> {
  if (role === 'mapping' || role === 'key') {
    const fault = await checkReadable(path);
    if (fault !== undefined) return { fault };
    return { problems: role === 'mapping' ? ((await validators.mapping?.(path, name, config)) ?? []) : [] };
  }
  const read = await readSettledFile(path, { maxBytes: maxNamedFileBytes });
  const decoded = 'fault' in read ? read : decodeText(read.bytes);
  if ('fault' in decoded) return decoded;
  const { text } = decoded;
  return {
    text,
    problems:
      role === 'protected-resources' ? (validators.protectedResources?.(text, name, config) ?? []) : [],
  };
}

/** The key files of an issuer are checked together, since two of them may have the same `kid`. */
async function validateKeyFiles(
  { auth }: PartialConfig,
  configFile: { readonly path: string; readonly name: string },
  validators: FileValidators,
): Promise<SettingProblem[]> {
  const found = (auth === undefined ? [] : listIssuers(auth)).map(
    async ({ path: at, keys, algorithms }): Promise<SettingProblem[]> => {
      if (keys === undefined || !('files' in keys)) return [];
      const named = keys.files.map((file) => nameFile(file, configFile));
      const problems =
        (await validators.keyFiles?.(
          named.map(({ path }) => path),
          algorithms,
        )) ?? [];
      return problems.map(({ file, text }) => {
        const all = [...at, 'keys', 'files'];
        if (file === undefined) return { path: all, text: `cannot be used: ${text}` };
        const index = named.findIndex(({ path }) => path === file);
        return { path: [...all, index], text: `names ${named[index]?.name}: ${text}` };
      });
    },
  );
  return (await Promise.all(found)).flat();
}

/** The absolute path of a file in the configuration, and its name as the user would give it. */
function nameFile(value: string, configFile: { readonly path: string; readonly name: string }) {
  const path = resolve(dirname(configFile.path), value);
  return { path, name: path === value ? value : join(dirname(configFile.name), value) };
}

/** The configuration with absolute paths of files. */
export function resolveNamedFiles(config: Config, configPath: string): Config {
  const absolute = (path: string) => resolve(dirname(configPath), path);
  const { listen, upstream, auth, urlResolver, store } = config;
  const allAbsolute = (named: object | undefined) =>
    named && Object.fromEntries(Object.entries(named).map(([part, file]) => [part, file && absolute(file)]));
  const tls = listen.tls && {
    ...listen.tls,
    cert: absolute(listen.tls.cert),
    key: absolute(listen.tls.key),
  };
  const withFiles = <T extends { readonly keys?: KeysConfig | undefined }>(of: T): T =>
    of.keys && 'files' in of.keys ? { ...of, keys: { files: of.keys.files.map(absolute) } } : of;
  const storeTls = allAbsolute(store.tls);
  const { serverName, ...upstreamFiles } = upstream.tls ?? {};
  const source = urlResolver ? urlResolver.source : undefined;
  return {
    ...config,
    listen: tls ? { ...listen, tls } : listen,
    upstream: upstream.tls
      ? {
          ...upstream,
          tls: { ...allAbsolute(upstreamFiles), ...(serverName !== undefined && { serverName }) },
        }
      : upstream,
    store: storeTls ? { ...store, tls: storeTls } : store,
    protectedResources: absolute(config.protectedResources),
    auth: withFiles({ ...auth, ...(auth.issuers && { issuers: auth.issuers.map(withFiles) }) }),
    urlResolver:
      urlResolver && source && source.file !== undefined
        ? { ...urlResolver, source: { ...source, file: absolute(source.file) } }
        : urlResolver,
  };
}

import type { ProtectedResources } from '../access/protected-list.ts';
import { parseProtectedList } from '../access/protected-list-document.ts';
import { type LoadedConfig, loadConfig } from '../config/load.ts';
import { formatProblem } from '../config/problem.ts';
import type { CommandIo } from './command-io.ts';
import { fileValidators } from './file-validators.ts';

/** EX_CONFIG of sysexits.h. */
export const badConfiguration = 78;

export interface LoadedForCommand extends LoadedConfig {
  /** The list that the configuration names. */
  readonly list: ProtectedResources;
}

/** The configuration with its list; undefined once its problems are on standard error: then exit 78. */
export async function loadConfiguration(
  file: string | undefined,
  io: CommandIo,
): Promise<LoadedForCommand | undefined> {
  const loaded = await loadConfig({ file, env: io.env, cwd: io.cwd, validators: fileValidators });
  if ('problems' in loaded) {
    for (const problem of loaded.problems) io.err(formatProblem(problem));
    return undefined;
  }
  const source = loaded.files.find(({ role }) => role === 'protected-resources');
  const { list } = parseProtectedList(source?.text ?? '', source?.name ?? '');
  if (list === undefined) throw new Error('a list that was judged good cannot be parsed');
  return { ...loaded, list };
}

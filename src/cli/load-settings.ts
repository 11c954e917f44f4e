import { type LoadedConfig, loadConfig } from '../config/load.ts';
import { formatProblem } from '../lib/problem.ts';
import type { CommandIo } from './command-io.ts';

/**
 * Loads the configuration; the content of files that it names is checked only with `validators`. Undefined: its problems were
 * printed, and the exit code is 78.
 */
export async function loadSettings(
  file: string | undefined,
  io: CommandIo,
  validators?: Parameters<typeof loadConfig>[0]['validators'],
): Promise<LoadedConfig | undefined> {
  const loaded = await loadConfig({ file, env: io.env, cwd: io.cwd, ...(validators && { validators }) });
  if (!('problems' in loaded)) return loaded;
  for (const problem of loaded.problems) io.err(formatProblem(problem));
  return undefined;
}

import { loadConfig } from '../config/load.ts';
import { askAdmin } from './ask-admin.ts';
import { type CommandIo, processIo } from './command-io.ts';

/** Asks /livez of the proxy that runs with this configuration on this machine. Exit code 0: it lives. */
export async function runHealth(
  options: { readonly config?: string; readonly json?: boolean },
  io: CommandIo = processIo,
): Promise<number> {
  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  if ('problems' in loaded || loaded.config.admin === false) {
    io.err('there is no admin port to ask: the configuration has problems, or admin is false');
    return 1;
  }
  const { status } = await askAdmin(loaded.config.admin, 'GET', '/livez');
  if (options.json) io.out(JSON.stringify({ alive: status === 200, status }));
  if (status === 200) return 0;
  const { port } = loaded.config.admin;
  io.err(status === 0 ? `nothing answers on the admin port ${port}` : `/livez answered ${status}`);
  return 1;
}

import { loadConfig } from '../config/load.ts';
import { formatProblem } from '../lib/problem.ts';
import { askAdmin } from './ask-admin.ts';
import { type CommandIo, processIo } from './command-io.ts';

export interface PurgeOptions {
  readonly config?: string;
  readonly url?: string;
  readonly prefix?: string;
  readonly all?: boolean;
  readonly json?: boolean;
}

/** Purges mappings of the running proxy and all its replicas. Exit code 0, 1 when it could not, 2 on bad usage. */
export async function runPurge(options: PurgeOptions, io: CommandIo = processIo): Promise<number> {
  const { url, prefix, all } = options;
  const given = [url, prefix, all || undefined].filter((one) => one !== undefined);
  if (given.length !== 1) {
    io.err('exactly one of --url URL, --prefix PREFIX and --all is needed');
    return 2;
  }
  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  if ('problems' in loaded) {
    for (const problem of loaded.problems) io.err(formatProblem(problem));
    return 78;
  }
  if (loaded.config.admin === false) {
    io.err('the configuration has no admin port (admin: false), and so nothing to ask');
    return 1;
  }
  const body = url !== undefined ? { url } : prefix !== undefined ? { prefix } : { all: true };
  const reply = await askAdmin(loaded.config.admin, 'POST', '/purge', body);
  if (reply.status === 200) {
    io.out(options.json ? JSON.stringify({ purged: body }) : `purged: ${url ?? prefix ?? 'all'}`);
    return 0;
  }
  io.err(reply.status === 0 ? `nothing answers on the admin port ${loaded.config.admin.port}` : reply.body);
  return 1;
}

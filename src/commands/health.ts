import http from 'node:http';
import { loadConfig } from '../config/load.ts';
import { type CommandIo, processIo } from './command-io.ts';

/** Asks /livez of the proxy that runs with this configuration on this machine. Exit code 0: it lives. */
export async function runHealth(
  options: { readonly config?: string },
  io: CommandIo = processIo,
): Promise<number> {
  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd });
  if ('problems' in loaded || loaded.config.admin === false) {
    io.err('there is no admin port to ask: the configuration has problems, or admin is false');
    return 1;
  }
  const { host, port } = loaded.config.admin;
  const status = await askLivez(host === '0.0.0.0' ? '127.0.0.1' : host, port);
  if (status === 200) return 0;
  io.err(status === 0 ? `nothing answers on the admin port ${port}` : `/livez answered ${status}`);
  return 1;
}

function askLivez(host: string, port: number): Promise<number> {
  return new Promise((resolve) => {
    const request = http.get({ host, port, path: '/livez', timeout: 1500 }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => resolve(0));
  });
}

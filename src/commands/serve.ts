import { readFile } from 'node:fs/promises';
import { type App, createApp } from '../app.ts';
import { loadConfig } from '../config/load.ts';
import { formatProblem } from '../config/problem.ts';
import { findUnsafeRuntime } from '../config/runtime.ts';
import { createLog, type Log } from '../telemetry/log.ts';
import { type CommandIo, processIo } from './command-io.ts';
import { fileJudges } from './file-judges.ts';

export interface ServeOptions {
  /** Configuration file; left out: the default ones. */
  readonly config?: string;
}

/** EX_CONFIG of sysexits.h. */
const badConfiguration = 78;

/** Runs the proxy until SIGTERM or SIGINT, then drains. Resolves to the exit code. */
export async function runServe(options: ServeOptions, io: CommandIo = processIo): Promise<number> {
  const unsafe = findUnsafeRuntime({
    version: process.version,
    execArgv: process.execArgv,
    env: process.env,
  });
  for (const { severity, text } of unsafe) io.err(`${severity}: ${text}`);
  if (unsafe.some(({ severity }) => severity === 'error')) return badConfiguration;

  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd, judges: fileJudges });
  if ('problems' in loaded) {
    for (const problem of loaded.problems) io.err(formatProblem(problem));
    io.err('shopward does not start with this configuration; `shopward check` checks it without starting');
    return badConfiguration;
  }
  for (const warning of loaded.warnings) io.err(formatProblem(warning));

  const { config, files } = loaded;
  const log = createLog(config.log.level);
  const app = await createApp({
    config,
    protectedList: files.find(({ role }) => role === 'protected-resources')?.text ?? '',
    tls: config.listen.tls && {
      cert: await readFile(config.listen.tls.cert, 'utf8'),
      key: await readFile(config.listen.tls.key, 'utf8'),
    },
    log,
  });
  const stopped = untilStopped(app, log);
  try {
    const { url, adminUrl } = await app.listen();
    io.err(
      `shopward is listening on ${url} for ${config.upstream.url}${adminUrl ? `, admin on ${adminUrl}` : ''}`,
    );
  } catch (fault) {
    io.err(`shopward cannot start: ${fault instanceof Error ? fault.message : fault}`);
    await app.close();
    return isAddressFault(fault) ? badConfiguration : 1;
  }
  return stopped;
}

/** Resolves to the exit code once a signal, or a fault that nobody caught, has led to a drain. */
function untilStopped(app: App, log: Log): Promise<number> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (code: number, why: string) => {
      if (stopping) return;
      stopping = true;
      log.info({ event: 'draining', why }, 'draining');
      app.close().then(
        () => resolve(code),
        () => resolve(1),
      );
    };
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => {
        // Whoever asks twice does not want to wait for requests in flight.
        if (stopping) process.exit(1);
        stop(0, signal);
      });
    }
    process.on('SIGHUP', () => {
      log.info({ event: 'reload' }, 'SIGHUP: looking at lists and keys');
      app.reload().catch((fault) => log.error({ event: 'fault', err: fault }, 'a reload met a fault'));
    });
    // Node's state is unknown behind such a fault: finish what is in flight, never go on.
    process.on('uncaughtException', (fault, origin) => {
      log.fatal({ event: 'crash', origin, err: fault }, 'a fault that nobody caught');
      stop(1, origin);
    });
  });
}

function isAddressFault(fault: unknown): boolean {
  const { code } = fault as NodeJS.ErrnoException;
  return code === 'EADDRINUSE' || code === 'EACCES' || code === 'EADDRNOTAVAIL';
}

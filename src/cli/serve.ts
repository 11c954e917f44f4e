import { availableParallelism } from 'node:os';
import type { Explain } from '../app/admin.ts';
import { secretsOf, watchConfig } from '../app/secrets.ts';
import { watchEventLoop } from '../cluster/event-loop-watch.ts';
import { type Running, untilStopped } from '../cluster/until-stopped.ts';
import { loadConfig } from '../config/load.ts';
import { findUnsafeRuntime } from '../config/runtime.ts';
import { formatProblem } from '../lib/problem.ts';
import { createLog } from '../telemetry/log.ts';
import {
  badConfiguration,
  type CommandIo,
  type CommonChoice,
  notNow,
  processIo,
  version,
} from './command-io.ts';
import { startValidators } from './file-validators.ts';

/** Runs the proxy until SIGTERM or SIGINT, then drains. Resolves to the exit code. */
export async function runServe(options: CommonChoice, io: CommandIo = processIo): Promise<number> {
  if (isUnsafeRuntime(io)) return badConfiguration;

  const validators = startValidators();
  const loaded = await loadConfig({ file: options.config, env: io.env, cwd: io.cwd, validators });
  if ('problems' in loaded) {
    for (const problem of loaded.problems) io.err(formatProblem(problem));
    io.err('shopward does not start with this configuration; `shopward check` checks it without starting');
    return badConfiguration;
  }
  for (const warning of loaded.warnings) io.err(formatProblem(warning));

  const { config } = loaded;
  const list = loaded.files.find(({ role }) => role === 'protected-resources');
  const log = createLog(config.log.level);
  const count = config.workers === 'auto' ? availableParallelism() : config.workers;
  const input = {
    config,
    protectedList: { text: list?.text ?? '', packed: validators.packed },
    secrets: secretsOf(loaded),
    log,
    version,
    explain: explainForConsole,
  };
  // Load only the code of this role: a primary forwards no requests, and a single process has no workers.
  const app =
    count > 1
      ? (await import('../cluster/primary.ts')).createPrimary({ ...input, count })
      : await (await import('../app.ts')).createApp(input);
  const files = watchConfig(loaded, (changed) => app.applySecrets(changed), log);
  let endWatch: (() => void) | undefined;
  const running: Running = {
    reload() {
      files.reload();
      return app.reload();
    },
    close(graceMs) {
      files.close();
      return app.close(graceMs).finally(() => endWatch?.());
    },
  };
  const stopped = untilStopped(running, log);
  try {
    const { url, adminUrl } = await app.listen();
    const { eventLoopStall } = config.limits;
    if (eventLoopStall !== 'none') endWatch = watchEventLoop(eventLoopStall);
    io.err(
      `shopward is listening on ${url} for ${config.upstream.url}${adminUrl ? `, admin on ${adminUrl}` : ''}`,
    );
  } catch (fault) {
    io.err(`shopward cannot start: ${fault instanceof Error ? fault.message : fault}`);
    await app.close(0);
    return exitCodeOf(fault);
  }
  return stopped;
}

/** Loaded when the console first asks, to keep the start short. */
const explainForConsole: Explain = async (question, config, list, inspect) =>
  (await import('./explain/explain-pasted.ts')).explainForConsole(question, config, list, inspect);

/** Prints what is unsafe about this process. True: the process must not serve. */
function isUnsafeRuntime(io: CommandIo): boolean {
  const unsafe = findUnsafeRuntime(process);
  for (const { severity, text } of unsafe) io.err(`${severity}: ${text}`);
  return unsafe.some(({ severity }) => severity === 'error');
}

/** 75: another start may succeed, since the port is in use or the address does not exist yet. 78: this user may not use the port. */
function exitCodeOf(fault: unknown): number {
  const { code } = fault as NodeJS.ErrnoException;
  if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL') return notNow;
  return code === 'EACCES' ? badConfiguration : 1;
}

import { rm } from 'node:fs/promises';
import { expect } from 'vitest';
import type { FilterDefinition } from '../../src/app/filter-definition.ts';
import { secretsOf, watchConfig } from '../../src/app/secrets.ts';
import { createApp } from '../../src/app.ts';
import { version } from '../../src/cli/command-io.ts';
import { explainForConsole } from '../../src/cli/explain/explain-pasted.ts';
import { fileValidators } from '../../src/cli/file-validators.ts';
import { runServe } from '../../src/cli/serve.ts';
import { loadConfig } from '../../src/config/load.ts';
import type { Config } from '../../src/config/schema.ts';
import { formatProblem } from '../../src/lib/problem.ts';
import type { RecordForms } from '../../src/redis/membership.ts';
import type { ExchangeRecord } from '../../src/telemetry/exchange-record.ts';
import { createLog } from '../../src/telemetry/log.ts';
import {
  collect,
  issueToken,
  portOf,
  prepare,
  type RunningShopward,
  type ShopwardOptions,
} from './shopward.ts';

export interface ShopwardHere extends RunningShopward {
  /** Does what SIGHUP does to a process. */
  reload(): Promise<void>;
  readonly config: Config;
}

export interface HereOptions extends Omit<ShopwardOptions, 'launcher' | 'awaitListening'> {
  /** Runs as another version, with other record formats in the store. */
  readonly runs?: { readonly version: string; readonly forms?: RecordForms };
  readonly filters?: readonly FilterDefinition[];
  /** Gets the record of each exchange, as a primary does. The admin port is then off. */
  readonly noteExchange?: (record: ExchangeRecord) => void;
}

/** Standard error of each proxy in this process: a warning of the process may come from any of them. */
const printers = new Set<(text: string) => void>();
process.on('warning', ({ name, message }) => {
  for (const print of printers) print(`${name}: ${message}\n`);
});

/**
 * Runs `serve` in this process, with a configuration file and real sockets, for a twentieth of the CPU of a process.
 * For signals, exit codes, standard output and workers use `startShopward`.
 */
export async function startShopwardHere(options: HereOptions): Promise<ShopwardHere> {
  const { folder, configFile, listFile, signer } = await prepare(options);
  const loaded = await loadConfig({
    file: configFile,
    env: { ...options.env },
    cwd: folder,
    validators: fileValidators,
  });
  if ('problems' in loaded) throw new Error(loaded.problems.map(formatProblem).join('\n'));
  if (loaded.config.workers !== 1) throw new Error('workers are processes: startShopward');
  const streams = collect();
  for (const warning of loaded.warnings) streams.err(`${formatProblem(warning)}\n`);
  const log = createLog(loaded.config.log.level, { pretty: false, linesTo: { write: streams.out } });
  const app = await createApp({
    config: loaded.config,
    protectedList: { text: loaded.files.find(({ role }) => role === 'protected-resources')?.text ?? '' },
    secrets: secretsOf(loaded),
    log,
    version: options.runs?.version ?? version,
    forms: options.runs?.forms,
    explain: explainForConsole,
    ...(options.filters && { filters: options.filters }),
    ...(options.noteExchange && { worker: { noteExchange: options.noteExchange } }),
  });
  const secrets = watchConfig(loaded, (changed) => app.applySecrets(changed), log);
  printers.add(streams.err);
  let closed: Promise<void> | undefined;
  const close = async () => {
    secrets.close();
    await app.close();
    printers.delete(streams.err);
    await rm(folder, { recursive: true, force: true });
  };
  const { url, adminUrl = '' } = await app.listen().catch(async (fault) => {
    await close();
    throw fault;
  });
  return {
    url,
    port: portOf(url),
    adminUrl,
    adminPort: portOf(adminUrl),
    folder,
    configFile,
    listFile,
    log: streams.log,
    waitForLog: streams.waitForLog,
    output: streams.output,
    issueToken: (claims = {}, header = {}) => issueToken(signer, claims, header),
    signer,
    config: loaded.config,
    reload() {
      secrets.reload();
      return app.reload();
    },
    async stop() {
      closed ??= close();
      await closed;
      expect(streams.output()).not.toContain('MaxListenersExceededWarning');
    },
  };
}

/** Output and exit code of `serve` for a configuration that it refuses, in this process. */
export async function refuseHere(options: HereOptions): Promise<{ code: number; output: string }> {
  const { folder, configFile } = await prepare(options);
  let output = '';
  const print = (text: string) => {
    output += `${text}\n`;
  };
  const io = { out: print, err: print, env: { ...options.env }, cwd: folder };
  const code = await runServe({ config: configFile }, io);
  await rm(folder, { recursive: true, force: true });
  return { code, output };
}

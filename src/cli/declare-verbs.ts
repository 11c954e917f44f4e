import type { Command } from 'commander';
import { runCheck } from './check.ts';
import { configFile, declareVerb, json, type Run } from './declare-verb.ts';
import { declareExplain } from './explain.ts';
import { runHealth } from './health.ts';
import { declareProtected } from './protected.ts';
import { type PurgeOptions, runPurge } from './purge.ts';
import { runSchema } from './schema.ts';
import { runTokens, type TokensOptions } from './tokens.ts';
import { declareVerify } from './verify.ts';
import { runVersion } from './version.ts';

/** Every verb but `serve`. */
export function declareVerbs(program: Command): void {
  const verb = (name: string, description: string, run: Run) => declareVerb(program, name, description, run);

  verb(
    'check',
    'validate every file and print all problems',
    (options: { config?: string; json?: boolean }) => runCheck(options),
  )
    .addOption(configFile)
    .addOption(json);
  declareExplain(program);
  declareProtected(program);
  declareVerify(program);
  verb('schema', 'print the JSON Schemas that editors use', (which: string | undefined) =>
    runSchema(which),
  ).argument('[which]', 'config (default) or protected-resources');
  verb('purge', 'forget URL mappings, in every replica', (options: PurgeOptions) => runPurge(options))
    .addOption(configFile)
    .option('--url <url>', 'one URL')
    .option('--prefix <prefix>', 'every URL that begins so')
    .option('--all', 'every URL')
    .addOption(json);
  verb('tokens', 'list, revoke or tidy up refresh tokens', (action: string, options: TokensOptions) =>
    runTokens(action, options),
  )
    .argument('<action>', 'list, revoke or purge-expired')
    .addOption(configFile)
    .option('--subject <name>', 'only tokens of this user; revoke needs it')
    .addOption(json);
  verb(
    'health',
    'ask /livez of the running proxy (for container health checks)',
    (options: { config?: string; json?: boolean }) => runHealth(options),
  )
    .addOption(configFile)
    .addOption(json);
  verb('version', 'print versions', (options: { json?: boolean }) => runVersion(options)).addOption(json);
}

import type { Command } from 'commander';
import { runCheck } from './check.ts';
import { configFile, declareVerb, json, type Run } from './declare-verb.ts';
import { declareExplain } from './explain.ts';
import { runHealth } from './health.ts';
import { type InitOptions, runInit } from './init.ts';
import { declareProtected } from './protected.ts';
import { type PurgeOptions, runPurge } from './purge.ts';
import { runSchema } from './schema.ts';
import { runTokens, type TokensOptions } from './tokens.ts';
import { declareVerify } from './verify.ts';
import { runVersion } from './version.ts';

/** Every verb but `serve`. */
export function declareVerbs(program: Command): void {
  const verb = (name: string, description: string, run: Run) => declareVerb(program, name, description, run);

  verb('init', 'write a configuration and a list for a shop', (options: InitOptions) => runInit(options))
    .option('--spryker', 'a Spryker shop')
    .option('--openapi <file>', 'any shop with an OpenAPI document: its operations become the rows')
    .option('--blank', 'any shop; the rows are written by hand')
    .option('--upstream <url>', 'address of the shop')
    .option('--keys <source>', 'URL of its JSON Web Key Set, or a file with its public key')
    .option('--dir <folder>', 'where the files go (default: config)')
    .option('--force', 'replace files that are there');
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

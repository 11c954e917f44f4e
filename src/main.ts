#!/usr/bin/env node
/** The command line: verb -> command. */
import { Command, CommanderError } from 'commander';
import { runCheck } from './commands/check.ts';
import { configFile, declareVerb, json, type Run } from './commands/declare-verb.ts';
import { declareExplain } from './commands/explain.ts';
import { runHealth } from './commands/health.ts';
import { declareProtected } from './commands/protected.ts';
import { type PurgeOptions, runPurge } from './commands/purge.ts';
import { runSchema } from './commands/schema.ts';
import { runServe } from './commands/serve.ts';
import { runTokens, type TokensOptions } from './commands/tokens.ts';
import { declareVerify } from './commands/verify.ts';
import { runVersion, version } from './commands/version.ts';

/** Exit codes: 0 done, 1 found something, 2 bad usage, 78 bad configuration (EX_CONFIG of sysexits.h). */
const badUsage = 2;

const program = new Command('shopward')
  .description("A reverse proxy that guards an existing shop's REST API.")
  .version(version)
  .showHelpAfterError('(run shopward --help for all verbs)')
  .exitOverride();

const verb = (name: string, description: string, run: Run) => declareVerb(program, name, description, run);

verb('serve', 'run the proxy (default)', (options: { config?: string }) => runServe(options)).addOption(
  configFile,
);
verb('check', 'validate every file and print all problems', (options: { config?: string; json?: boolean }) =>
  runCheck(options),
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
  .option('--all', 'every URL');
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
  (options: { config?: string }) => runHealth(options),
).addOption(configFile);
verb('version', 'print versions', () => runVersion());

// `shopward protected list | head`: nobody reads on, and that is no fault.
process.stdout.on('error', (fault: NodeJS.ErrnoException) => {
  if (fault.code !== 'EPIPE') throw fault;
});

try {
  const [, , first] = process.argv;
  // `shopward` alone serves; so does `shopward --config FILE`.
  const bare = first === undefined || first === '--config' || first === '-c';
  await program.parseAsync(
    bare ? [...process.argv.slice(0, 2), 'serve', ...process.argv.slice(2)] : process.argv,
  );
} catch (fault) {
  if (!(fault instanceof CommanderError)) throw fault;
  process.exitCode = fault.exitCode === 0 ? 0 : badUsage;
}

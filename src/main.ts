#!/usr/bin/env node
/** The command line: verb -> command. */
import { Command, CommanderError, Option } from 'commander';
import { runCheck } from './commands/check.ts';
import { type ExplainOptions, runExplain } from './commands/explain.ts';
import { runHealth } from './commands/health.ts';
import { type PurgeOptions, runPurge } from './commands/purge.ts';
import { runSchema } from './commands/schema.ts';
import { runServe } from './commands/serve.ts';
import { runVersion, version } from './commands/version.ts';

/** Exit codes: 0 done, 1 found something, 2 bad usage, 78 bad configuration (EX_CONFIG of sysexits.h). */
const badUsage = 2;

const program = new Command('shopward')
  .description("A reverse proxy that guards an existing shop's REST API.")
  .version(version)
  .showHelpAfterError('(run shopward --help for all verbs)')
  .exitOverride();

const configFile = new Option(
  '-c, --config <file>',
  'configuration file (default: config/shopward.yaml, else /etc/shopward/shopward.yaml)',
);
const json = new Option('--json', 'print JSON instead of text');

/** What a verb does with its arguments and options; resolves to the exit code. */
// biome-ignore lint/suspicious/noExplicitAny: commander hands over whatever was declared for the verb
type Run = (...args: any[]) => Promise<number>;

function verb(name: string, description: string, run: Run): Command {
  return program
    .command(name)
    .description(description)
    .action(async (...args) => {
      process.exitCode = await run(...args);
    });
}

verb('serve', 'run the proxy (default)', (options: { config?: string }) => runServe(options)).addOption(
  configFile,
);
verb('check', 'validate every file and print all problems', (options: { config?: string; json?: boolean }) =>
  runCheck(options),
)
  .addOption(configFile)
  .addOption(json);
verb('explain', 'print what would happen to a request, offline', (words: string[], options: ExplainOptions) =>
  runExplain(words, options),
)
  .argument('<request...>', 'METHOD and URL, or whatever was pasted from a log')
  .option('-H, --header <field...>', 'a field of the request, "Name: value"')
  .addOption(configFile)
  .addOption(json);
verb('schema', 'print the JSON Schemas that editors use', (which: string | undefined) =>
  runSchema(which),
).argument('[which]', 'config (default) or protected-resources');
verb('purge', 'forget URL mappings, in every replica', (options: PurgeOptions) => runPurge(options))
  .addOption(configFile)
  .option('--url <url>', 'one URL')
  .option('--prefix <prefix>', 'every URL that begins so')
  .option('--all', 'every URL');
verb(
  'health',
  'ask /livez of the running proxy (for container health checks)',
  (options: { config?: string }) => runHealth(options),
).addOption(configFile);
verb('version', 'print versions', () => runVersion());

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

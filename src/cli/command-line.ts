import { Command, CommanderError } from 'commander';
import { badUsage, version } from './command-io.ts';
import { configFile, declareVerb, json, type Run } from './declare-verb.ts';

/** The command line: verb -> command. `argv` as `process.argv`; sets the exit code of the process. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const program = new Command('shopward')
    .description("A reverse proxy that guards an existing shop's REST API.")
    .version(`shopward ${version}\nnode ${process.version}\n${process.platform} ${process.arch}`)
    .showHelpAfterError('(run shopward --help for all verbs)')
    .exitOverride();

  const [, , first] = argv;
  // `shopward` alone serves; so does `shopward --config FILE`.
  const isBare = first === undefined || first === '--config' || first === '-c';

  declareVerb(program, 'serve', 'run the proxy (default)', async (options: { config?: string }) =>
    (await import('./serve.ts')).runServe(options),
  ).addOption(configFile);
  if (!isBare && first !== 'serve') {
    await declareVerbs(program, first);
  }

  // `shopward protected list | head`: that the reader stops is not an error.
  process.stdout.on('error', (fault: NodeJS.ErrnoException) => {
    if (fault.code !== 'EPIPE') throw fault;
  });

  try {
    await program.parseAsync(isBare ? [...argv.slice(0, 2), 'serve', ...argv.slice(2)] : argv);
  } catch (fault) {
    if (!(fault instanceof CommanderError)) throw fault;
    process.exitCode = fault.exitCode === 0 ? 0 : badUsage;
  }
}

/** Verbs with much to declare, each in its own file. */
const large: Readonly<Record<string, () => Promise<(program: Command) => void>>> = {
  explain: async () => (await import('./explain.ts')).declareExplain,
  token: async () => (await import('./token.ts')).declareToken,
  protected: async () => (await import('./protected.ts')).declareProtected,
  rollout: async () => (await import('./rollout.ts')).declareRollout,
  verify: async () => (await import('./verify.ts')).declareVerify,
};

/** Declares every verb but `serve`. A verb's code is loaded only when it is called. */
async function declareVerbs(program: Command, called: string): Promise<void> {
  const verb = (name: string, description: string, run: Run) => declareVerb(program, name, description, run);

  verb('init', 'write a configuration and a list for a shop', async (options) =>
    (await import('./init.ts')).runInit(options),
  )
    .option('--spryker', 'a Spryker shop')
    .option('--openapi <file>', 'any shop with an OpenAPI document: its operations become the rows')
    .option('--blank', 'any shop; the rows are written by hand')
    .option('--upstream <url>', 'address of the shop, with the prefix of its paths if there is one')
    .option('--keys <source>', 'URL of its JSON Web Key Set, or a file (default: found at the shop)')
    .option('--secret <variable>', 'environment variable with its secret, if it signs with HS256')
    .option(
      '--token <file>',
      'sample access token (-: standard input) whose issuer and audience are required',
    )
    .option(
      '--errors <format>',
      'how it writes errors: jsonapi, problem or json (default: found at the shop)',
    )
    .option('--dir <folder>', 'where the files go (default: config)')
    .option('--force', 'replace files that are there');
  verb('check', 'validate every file and print all problems', async (options) =>
    (await import('./check.ts')).runCheck(options),
  )
    .option('--offline', 'do not load the keys')
    .addOption(configFile)
    .addOption(json);
  const small = ['init', 'check', 'purge', 'tokens', 'health'];
  for (const [name, load] of Object.entries(large)) {
    if (called === name || !small.includes(called)) (await load())(program);
  }
  verb('purge', 'delete cached URL mappings, in every replica', async (options) =>
    (await import('./admin-verbs.ts')).runPurge(options),
  )
    .addOption(configFile)
    .option('--url <url>', 'one URL')
    .option('--prefix <prefix>', 'every URL that begins with it')
    .option('--all', 'every URL');
  verb('tokens', 'list or revoke refresh tokens, or delete expired ones', async (action, options) =>
    (await import('./tokens.ts')).runTokens(action, options),
  )
    .argument('<action>', 'list, revoke or purge-expired')
    .addOption(configFile)
    .option('--subject <name>', 'only tokens of this user; required for revoke')
    .addOption(json);
  verb('health', 'ask /livez of the running proxy (for container health checks)', async (options) =>
    (await import('./admin-verbs.ts')).runHealth(options),
  ).addOption(configFile);
}

import { Command, CommanderError } from 'commander';
import { badUsage, version } from './command-io.ts';
import { configFile, declareVerb } from './declare-verb.ts';

/** The command line: verb -> command. `argv` as `process.argv`; sets the exit code of the process. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const program = new Command('shopward')
    .description("A reverse proxy that guards an existing shop's REST API.")
    .version(version)
    .showHelpAfterError('(run shopward --help for all verbs)')
    .exitOverride();

  const [, , first] = argv;
  // `shopward` alone serves; so does `shopward --config FILE`.
  const isBare = first === undefined || first === '--config' || first === '-c';

  declareVerb(program, 'serve', 'run the proxy (default)', async (options: { config?: string }) =>
    (await import('./serve.ts')).runServe(options),
  ).addOption(configFile);
  if (!isBare && first !== 'serve') {
    await (await import('./declare-verbs.ts')).declareVerbs(program, first);
  }

  // `shopward protected list | head`: nobody reads on, and that is no fault.
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

import { Command, CommanderError } from 'commander';
import { badUsage, processIo, version } from './command-io.ts';
import { type Verb, verbs } from './verbs.ts';

/** Runs the verb that `argv` (in the form of `process.argv`) names, and sets the exit code of the process. */
export async function runCommandLine(argv: readonly string[]): Promise<void> {
  const program = new Command('shopward')
    .description("A reverse proxy that guards an existing shop's REST API.")
    .version(`shopward ${version}\nnode ${process.version}\n${process.platform} ${process.arch}`)
    .showHelpAfterError('(run shopward --help for all verbs)')
    .exitOverride();
  for (const [name, verb] of Object.entries(verbs)) declare(program, name, verb);

  // `shopward protected diff | head`: a reader that stops early is not an error.
  process.stdout.on('error', (fault: NodeJS.ErrnoException) => {
    if (fault.code !== 'EPIPE') endWith(fault);
  });

  // `shopward` alone serves; so does `shopward --config FILE`.
  const isBare = /^(?:--config|-c)?$/.test(argv[2] ?? '');
  try {
    await program.parseAsync(isBare ? [...argv.slice(0, 2), 'serve', ...argv.slice(2)] : argv);
  } catch (fault) {
    if (!(fault instanceof CommanderError)) return endWith(fault as NodeJS.ErrnoException);
    process.exitCode = fault.exitCode === 0 ? 0 : badUsage;
  }
}

/** A full disk, a folder without a right: the system's message is enough. Anything else is a bug and needs its stack. */
function endWith(fault: NodeJS.ErrnoException): void {
  if (fault.syscall === undefined) throw fault;
  processIo.err(`error: ${fault.message}`);
  process.exit(1);
}

function declare(program: Command, name: string, verb: Verb): void {
  const [first = '', second] = name.split(' ');
  const parent = program.commands.find((one) => one.name() === first) ?? program;
  const command = parent.command(second ?? first).description(verb.description);
  for (const [syntax, meaning] of verb.arguments ?? []) command.argument(syntax, meaning);
  for (const option of verb.options ?? []) command.addOption(option);
  command.addHelpText('after', helpAfter(verb));
  const { load } = verb;
  if (load === undefined) return;
  const given = (verb.arguments?.length ?? 0) + (verb.options ? 1 : 0);
  command.action(async (...args) => {
    const run = await load();
    process.exitCode = await run(...args.slice(0, given));
  });
}

/** The help below the options: notes, examples and exit codes. */
function helpAfter({ notes = [], examples, exits }: Verb): string {
  const codes = Object.entries(exits).map(([code, when]) => `${code} ${when}`);
  const lines = [...notes, '', 'Examples:', ...examples.map((line) => `  ${line}`), ''];
  return [...(notes.length > 0 ? [''] : []), ...lines, `Exit code: ${codes.join(', ')}`].join('\n');
}

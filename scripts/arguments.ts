import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

/** An option of a script: flags as commander writes them (`--minutes <n>`, `--short`), meaning, default, allowed values. */
type ScriptOption = readonly [
  flags: string,
  meaning: string,
  byDefault?: string | number | undefined,
  among?: readonly string[],
];

export interface Usage {
  /** How the script is called: `npm run soak --`. */
  readonly name: string;
  readonly about: string;
  /** An option with a numeric default accepts only numbers. */
  readonly options?: readonly ScriptOption[];
  /** Words after the options, such as `[parts...]` or `<file>`. `among`: the only words that are accepted. */
  readonly words?: { readonly name: string; readonly meaning: string; readonly among?: readonly string[] };
}

const badUsage = 2;

/**
 * Reads the arguments of a script. `--help` prints the usage and exits 0. An unknown argument, or a text in place of a
 * number, prints one line on stderr and exits 2, before the script starts anything.
 */
export function readArguments<Values extends object>(usage: Usage): Values & { readonly words: string[] } {
  const { name, about, options = [], words } = usage;
  const command = new Command(name)
    .description(about)
    .configureOutput({ outputError: (text, write) => write(`${text.trim().replace(/\n/g, ' ')}\n`) })
    .allowExcessArguments(false)
    .exitOverride();
  for (const [flags, meaning, byDefault, among] of options) {
    const option = new Option(flags, meaning).default(byDefault);
    if (typeof byDefault === 'number') option.argParser(toNumber);
    if (among !== undefined) option.choices(among);
    command.addOption(option);
  }
  if (words !== undefined) command.argument(words.name, words.meaning);
  try {
    command.parse();
    const unknown = command.args.find((word) => words?.among?.includes(word) === false);
    if (unknown !== undefined)
      command.error(`error: unknown word '${unknown}'; known: ${words?.among?.join(', ')}`);
  } catch (fault) {
    if (!(fault instanceof CommanderError)) throw fault;
    process.exit(fault.exitCode === 0 ? 0 : badUsage);
  }
  return { ...command.opts<Values>(), words: command.args };
}

function toNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError('Not a number.');
  return value;
}

import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';

/** What a script takes: `--minutes <n>` or `--short` as commander writes it, what it means, its default, all there are. */
type ScriptOption = readonly [
  flags: string,
  meaning: string,
  byDefault?: string | number | undefined,
  among?: readonly string[],
];

export interface Usage {
  /** As it is called: `npm run soak --`. */
  readonly name: string;
  readonly about: string;
  /** An option with a number for its default takes only numbers. */
  readonly options?: readonly ScriptOption[];
  /** Words that follow the options, such as `[parts...]` or `<file>`; `among`: no other word is taken. */
  readonly words?: { readonly name: string; readonly meaning: string; readonly among?: readonly string[] };
}

const badUsage = 2;

/**
 * The arguments of a script of this repository. `--help` prints what there is and exits 0; whatever is unknown, or no
 * number, is reported in one line on stderr, exit 2: before the script has started anything.
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
    if (unknown !== undefined) command.error(`error: no '${unknown}'; there are ${words?.among?.join(', ')}`);
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

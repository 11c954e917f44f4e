import { type Command, Option } from 'commander';
import { helpAfter } from './help-texts.ts';

export const configFile = new Option(
  '-c, --config <file>',
  'configuration file (default: config/shopward.yaml, else /etc/shopward/shopward.yaml)',
);
export const listFile = new Option('--list <file>', 'a list file, instead of the one of the configuration');
export const json = new Option('--json', 'print JSON instead of text');

/** For an option that may stand several times; unlike commander's own lists it leaves the arguments behind it alone. */
export function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** What a verb does with its arguments and options; resolves to the exit code. */
// biome-ignore lint/suspicious/noExplicitAny: commander hands over whatever was declared for the verb
export type Run = (...args: any[]) => Promise<number>;

/** Declares a verb with its examples and exit codes; `name` may be two words, the first that of `parent`. */
export function declareVerb(parent: Command, name: string, description: string, run: Run): Command {
  return parent
    .command(name.split(' ').at(-1) ?? name, { isDefault: name === 'protected list' })
    .description(description)
    .addHelpText('after', helpAfter(name))
    .action(async (...args) => {
      process.exitCode = await run(...args);
    });
}

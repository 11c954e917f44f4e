import type { Option } from 'commander';
import { type Verb, verbs } from '../src/cli/verbs.ts';

/** Options that most verbs have; the introduction of the page describes them. */
const common = (verbs.rollout?.options ?? []).map((one) => one.flags);
const commonExits: readonly string[] = ['bad usage', 'bad configuration'];

const intro = `# Command line

Generated from \`src/cli/verbs.ts\` by \`npm run docs\`; do not edit this page. \`shopward VERB --help\` prints the same.

In a clone, \`shopward\` is \`npm run -s shopward --\`. Results go to standard output, problems to standard error as
\`file:line:col: severity: text\`. Exit code 2 is bad usage, 78 a bad configuration.

- \`-c, --config <file>\`: configuration file (default: config/shopward.yaml, else /etc/shopward/shopward.yaml). Set the environment variables that it names. For a verb that asks
  neither the shop nor its keys any value will do: \`JWKS_URL=https://x shopward explain ...\`.
- \`--json\`: print JSON instead of text.
`;

/** docs/command-line.md: every verb, as its `--help` shows it. */
export function commandReference(): string {
  const sections = Object.entries(verbs).flatMap(([name, verb]) => (verb.load ? section(name, verb) : []));
  return `${[intro.trimEnd(), ...sections].join('\n\n')}\n`;
}

function section(name: string, { description, options = [], notes = [], examples, exits, ...more }: Verb) {
  const words = (more.arguments ?? []).map(([syntax]) => ` ${syntax}`).join('');
  const asWords = options
    .filter(({ flags }) => common.includes(flags))
    .map(({ flags }) => ` [${/--\w+/.exec(flags)}]`);
  const meanings = [
    ...(more.arguments ?? []),
    ...options.flatMap((one) => (common.includes(one.flags) ? [] : [[one.flags, meaningOf(one)]])),
  ];
  return [
    `## ${name}`,
    `\`shopward ${name}${words}${asWords.join('')}\`: ${description}`,
    ...(meanings.length > 0
      ? [meanings.map(([flag, meaning]) => `- \`${flag}\`: ${meaning}`).join('\n')]
      : []),
    ...(notes.length > 0 ? [paragraphs(notes)] : []),
    examples.map((line) => `    ${line}`).join('\n'),
    `Exit code: ${exitText(exits)}`,
  ].join('\n\n');
}

function meaningOf({ description, defaultValue }: Option): string {
  return defaultValue === undefined ? description : `${description} (default: ${defaultValue})`;
}

function exitText(exits: Verb['exits']): string {
  return Object.entries(exits)
    .filter(([, when]) => !commonExits.includes(when))
    .map(([code, when]) => `**${code}** ${when}`)
    .join(', ');
}

/** Puts a blank line between paragraphs and around lists, but not between the items of a list. */
function paragraphs(lines: readonly string[]): string {
  return lines
    .map((line, i) => {
      const isNextItem = line.startsWith('- ') && lines[i - 1]?.startsWith('- ');
      return `${isNextItem ? '' : '\n'}${line}`;
    })
    .join('\n')
    .trimStart();
}

import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';
import type { OutageResult } from './outage.ts';

const { short, words } = readArguments<{ readonly short?: true }>({
  name: 'npm run drill --',
  about: 'Provokes outages; exits with 1 if an answer, log line or readiness message was not allowed.',
  options: [['--short', 'each outage takes a few seconds, as in the tests']],
  words: { name: '[words...]', meaning: 'only outages whose names contain one of them' },
});
// Imported after the arguments are read, because `--help` does not need it.
const { runOutages } = await import('./outage.ts');
const { outageGroups } = await import('./outages.ts');
const { findingsOf, rowOf } = await import('./report.ts');
const isAsked = ({ name }: { readonly name: string }) =>
  words.length === 0 || words.some((word) => name.includes(word));
const asked = outageGroups.flatMap(({ stage, outages }) =>
  outages.some(isAsked) ? [{ stage, outages: outages.filter(isAsked) }] : [],
);
if (asked.length === 0) {
  const names = outageGroups.flatMap(({ outages }) => outages.map(({ name }) => `  ${name}`));
  console.error(`no outage has one of these words in its name:\n${names.join('\n')}`);
  process.exit(2);
}
const results: OutageResult[] = [];
for (const group of asked) {
  for (const result of await runOutages(group, short ? 'short' : 'full')) {
    results.push(result);
    process.stderr.write(
      `${result.wrongs.length === 0 ? 'as it must be' : 'WRONG'}: ${result.name}\n${result.wrongs.map((wrong) => `  ${wrong}\n`).join('')}`,
    );
  }
}
for (const result of results) console.log(rowOf(result).join(' | '));
const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
if (!short && words.length === 0) writeResult('outage', findingsOf(results));
process.exit(wrongs.length === 0 ? 0 : 1);

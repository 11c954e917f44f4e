/**
 * Breaks what breaks at night, one thing after another, under the load of clients that behave as they should; prints what
 * they saw and what whoever is on call was told, as Markdown. Exits with 1 when something was not as it must be.
 *
 *     node test/drill/run.ts [--short] [a word of a drill's name]...
 */
import { parseArgs } from 'node:util';
import { type DrillResult, runDrill } from './drill.ts';
import { drills } from './drills.ts';
import { formatResults } from './report.ts';

const { values, positionals } = parseArgs({
  options: { short: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const asked = drills.filter(
  ({ name }) => positionals.length === 0 || positionals.some((word) => name.includes(word)),
);
if (asked.length === 0) {
  console.error(`no drill has such a word in its name:\n${drills.map(({ name }) => `  ${name}`).join('\n')}`);
  process.exit(2);
}
const results: DrillResult[] = [];
for (const drill of asked) {
  const result = await runDrill(drill, values.short ? 'short' : 'full');
  results.push(result);
  process.stderr.write(
    `${result.wrongs.length === 0 ? 'as it must be' : 'WRONG'}: ${result.name}\n${result.wrongs.map((wrong) => `  ${wrong}\n`).join('')}`,
  );
}
console.log(formatResults(results));
const wrongs = results.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
process.exit(wrongs.length === 0 ? 0 : 1);

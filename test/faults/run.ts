/**
 * Breaks every dependency in every way and prints what clients saw, as Markdown; exits with 1 when something was not as
 * it must be.
 */
import { readArguments } from '../../scripts/arguments.ts';
import { runClockFaults } from './clock-faults.ts';
import { runKeyFaults } from './key-faults.ts';
import { runLoadFaults } from './load-faults.ts';
import { runLogFaults } from './log-faults.ts';
import { runRedisFaults } from './redis-faults.ts';
import { formatRows, formatScenes } from './table.ts';
import { runUpstreamFaults } from './upstream-faults.ts';

type Part = readonly [name: string, run: () => Promise<{ table: string; wrongs: readonly string[] }>];

const wrongsOf = (rows: readonly { readonly name: string; readonly wrongs: readonly string[] }[]) =>
  rows.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
const rowsOf = (title: string, run: typeof runUpstreamFaults) => async () => {
  const rows = await run();
  return { table: formatRows(title, rows), wrongs: wrongsOf(rows) };
};
const scenesOf = (title: string, run: typeof runKeyFaults) => async () => {
  const scenes = await run();
  return { table: formatScenes(title, scenes), wrongs: wrongsOf(scenes) };
};
const parts: readonly Part[] = [
  ['upstream', rowsOf('the upstream', runUpstreamFaults)],
  ['redis', rowsOf('Redis', runRedisFaults)],
  ['keys', scenesOf('the key source', runKeyFaults)],
  ['clock', scenesOf('the wall clock', runClockFaults)],
  ['log', scenesOf('the log', runLogFaults)],
  ['load', scenesOf('under load', runLoadFaults)],
];

const { words: asked } = readArguments({
  name: 'npm run faults --',
  about: 'Breaks every dependency in every way; exits with 1 when something was not as it must be.',
  words: { name: '[parts...]', meaning: 'only these', among: parts.map(([name]) => name) },
});
const wrongs: string[] = [];
for (const [name, run] of parts) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const result = await run();
  console.log(`${result.table}\n`);
  wrongs.push(...result.wrongs);
}
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
process.exit(wrongs.length === 0 ? 0 : 1);

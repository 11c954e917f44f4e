/**
 * Runs the faults of every dependency and prints what clients saw, as Markdown. Exits with 1 if an answer was not
 * allowed.
 */
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';

/** In the order in which they run. */
const names = ['upstream', 'redis', 'keys', 'clock', 'log', 'load', 'uploads'] as const;
type Run = () => Promise<{ table: string; rows: number; wrongs: readonly string[] }>;

const { words: asked } = readArguments({
  name: 'npm run faults --',
  about: 'Runs the faults of every dependency; exits with 1 if an answer was not allowed.',
  words: { name: '[parts...]', meaning: 'only these', among: names },
});
// Imported after the arguments are read, because `--help` does not need it.
const { runClockFaults } = await import('./clock-faults.ts');
const { runKeyFaults } = await import('./key-faults.ts');
const { runLoadFaults } = await import('./load-faults.ts');
const { runLogFaults } = await import('./log-faults.ts');
const { runRedisFaults } = await import('./redis-faults.ts');
const { formatRows, formatScenes } = await import('./table.ts');
const { runUploadFaults } = await import('./upload-faults.ts');
const { runUpstreamFaults } = await import('./upstream-faults.ts');

const wrongsOf = (rows: readonly { readonly name: string; readonly wrongs: readonly string[] }[]) =>
  rows.flatMap(({ name, wrongs }) => wrongs.map((wrong) => `${name}: ${wrong}`));
const rowsOf = (title: string, run: typeof runUpstreamFaults) => async () => {
  const rows = await run();
  return { table: formatRows(title, rows), rows: rows.length, wrongs: wrongsOf(rows) };
};
const scenesOf = (title: string, run: typeof runKeyFaults) => async () => {
  const scenes = await run();
  return { table: formatScenes(title, scenes), rows: scenes.length, wrongs: wrongsOf(scenes) };
};
const parts: Readonly<Record<(typeof names)[number], Run>> = {
  upstream: rowsOf('the upstream', runUpstreamFaults),
  redis: rowsOf('Redis', runRedisFaults),
  keys: scenesOf('the key source', runKeyFaults),
  clock: scenesOf('the wall clock', runClockFaults),
  log: scenesOf('the log', runLogFaults),
  load: scenesOf('under load', runLoadFaults),
  uploads: scenesOf('refused uploads', runUploadFaults),
};
const wrongs: string[] = [];
const tables: string[] = [];
let faults = 0;
for (const name of names) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const result = await parts[name]();
  console.log(`${result.table}\n`);
  wrongs.push(...result.wrongs);
  tables.push(result.table);
  faults += result.rows;
}
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
if (asked.length === 0) {
  writeResult('faults', {
    title: 'Broken dependencies',
    command: 'npm run faults',
    promises: [
      {
        promise: 'faults: each kind of route gives an answer that the fault allows, and recovers',
        measured: `${faults} faults, ${wrongs.length} wrong answers`,
        isMet: wrongs.length === 0,
      },
    ],
    details: { tables: tables.map((table) => table.split('\n')), wrongs },
  });
}
process.exit(wrongs.length === 0 ? 0 : 1);

/**
 * Runs the faults of every dependency and prints what clients saw. Exits with 1 if an answer was not allowed.
 */
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';
import type { RowResult } from './fault-row.ts';
import type { Scene } from './scene.ts';

/** In the order in which they run. */
const names = ['upstream', 'redis', 'keys', 'clock', 'log', 'load', 'uploads'] as const;
type Run = () => Promise<readonly (RowResult | Scene)[]>;

const { words: asked } = readArguments({
  name: 'npm run faults --',
  about: 'Runs the faults of every dependency; exits with 1 if an answer was not allowed.',
  words: { name: '[parts...]', meaning: 'only faults of these', among: names },
});
// Imported after the arguments are read, because `--help` does not need it.
const { runClockFaults } = await import('./clock-faults.ts');
const { runKeyFaults } = await import('./key-faults.ts');
const { runLoadFaults } = await import('./load-faults.ts');
const { runLogFaults } = await import('./log-faults.ts');
const { runRedisFaults } = await import('./redis-faults.ts');
const { runUploadFaults } = await import('./upload-faults.ts');
const { runUpstreamFaults } = await import('./upstream-faults.ts');

const parts: Readonly<Record<(typeof names)[number], Run>> = {
  upstream: runUpstreamFaults,
  redis: runRedisFaults,
  keys: runKeyFaults,
  clock: runClockFaults,
  log: runLogFaults,
  load: runLoadFaults,
  uploads: runUploadFaults,
};
const wrongs: string[] = [];
const seen: (RowResult | Scene)[] = [];
for (const name of names) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const results = await parts[name]();
  for (const { wrongs: own, ...result } of results) console.log(JSON.stringify(result));
  wrongs.push(...results.flatMap((one) => one.wrongs.map((wrong) => `${one.name}: ${wrong}`)));
  seen.push(...results);
}
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
if (asked.length === 0) {
  writeResult('faults', {
    title: 'Broken dependencies',
    command: 'npm run faults',
    promises: [
      {
        promise: 'faults: each kind of route gives an answer that the fault allows, and recovers',
        measured: `${seen.length} faults, ${wrongs.length} wrong answers`,
        isMet: wrongs.length === 0,
      },
    ],
    details: seen,
  });
}
process.exit(wrongs.length === 0 ? 0 : 1);

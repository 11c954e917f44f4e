/**
 * Fuzzes in rounds, each with a new seed, for the given time. Seeds are printed. An input that fails is kept in
 * test/security/fuzz/regressions, and the tests run it again. Exits 1 if any input failed.
 */
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';
import { targetNames } from './target-names.ts';

const options = readArguments<{ minutes: number; seed: number; target?: string }>({
  name: 'npm run fuzz --',
  about:
    'Fuzzes with a new seed each round; exits with 1 when an input fails, which the tests try from then on.',
  options: [
    ['--minutes <n>', 'how long to run', 2],
    ['--target <name>', 'run this target only', undefined, targetNames],
    ['--seed <n>', 'seed of the first round', Math.floor(Math.random() * 2 ** 31)],
  ],
});
const { runTarget } = await import('./fuzz-target.ts');
const { keepRegression } = await import('./regressions.ts');
const { targets } = await import('./targets.ts');
const chosen = targets.filter(({ name }) => options.target === undefined || name === options.target);
const until = Date.now() + options.minutes * 60_000;
let { seed } = options;
const counts = new Map(chosen.map(({ name }) => [name, { inputs: 0, failures: 0, milliseconds: 0 }]));

for (const target of chosen) await target.open?.();
try {
  for (let round = 1; Date.now() < until; round += 1, seed += 1) {
    console.log(`round ${round}, seed ${seed}`);
    for (const target of chosen) {
      const count = counts.get(target.name);
      if (count === undefined || Date.now() >= until) continue;
      const started = Date.now();
      const failure = await runTarget(target, { numRuns: target.runs, seed });
      count.milliseconds += Date.now() - started;
      count.inputs += target.runs;
      if (failure === undefined) continue;
      count.failures += 1;
      console.error(`${target.name} fails with seed ${seed}, path ${failure.path}: ${failure.error}`);
      console.error(`  kept in ${keepRegression(target.name, failure)}`);
    }
  }
} finally {
  for (const target of chosen) {
    if (target.figures !== undefined) console.log(`${target.name}: ${target.figures()}`);
    await target.close?.();
  }
}
console.table(Object.fromEntries(counts));
const totals = [...counts.values()];
const sumOf = (key: 'inputs' | 'failures') => totals.reduce((sum, count) => sum + count[key], 0);
const { minutes, target } = options;
if (minutes >= (target === undefined ? 30 : 5)) {
  const [inputs, failures] = [sumOf('inputs'), sumOf('failures')];
  writeResult(target === undefined ? 'fuzz' : `fuzz-${target}`, {
    title: `Random input${target === undefined ? '' : `, ${target}`}`,
    command: `npm run fuzz -- --minutes ${minutes}${target === undefined ? '' : ` --target ${target}`}`,
    promises: [
      {
        promise: 'fuzz: no input fails',
        measured: `${failures} of ${inputs.toLocaleString('en')}`,
        isMet: failures === 0,
      },
    ],
    details: Object.fromEntries(counts),
  });
}
process.exitCode = sumOf('failures') > 0 ? 1 : 0;

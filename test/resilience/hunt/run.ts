/** Hunts for a lost update; exits with 1 when it finds one, or another violation. */
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';
import type { HuntOptions } from './hunt.ts';

const { calm, statuses, ...values } = readArguments<
  Pick<HuntOptions, 'replicas' | 'clients' | 'seconds' | 'carts' | 'redis' | 'seed' | 'batch' | 'broken'> & {
    readonly calm?: true;
    readonly statuses?: true;
  }
>({
  name: 'npm run hunt --',
  about: 'Hunts for a lost update; exits with 1 when it finds one, or another violation.',
  options: [
    ['--replicas <n>', 'number of replicas of shopward', 3],
    ['--clients <n>', 'number of concurrent clients', 50],
    ['--seconds <n>', 'duration of the run', 60],
    ['--carts <n>', 'number of carts that the clients share', 12],
    ['--redis <kind>', 'kind of the store', 'sentinel', ['sentinel', 'single']],
    ['--batch <how>', 'entityTags.resources[].batch of the carts', 'refuse', ['refuse', 'guarded']],
    ['--seed <n>', 'seed of requests and faults', Date.now() % 100_000],
    [
      '--broken <what>',
      'a setup that must lose updates, to show that the hunt finds them',
      undefined,
      ['tags', 'landing'],
    ],
    ['--calm', 'causes no faults, and reports the share of refused requests'],
    ['--statuses', 'also prints every status that clients saw'],
  ],
});
// Imported after the arguments are read, because `--help` does not need it.
const { listViolations, runHunt } = await import('./hunt.ts');
const { findingsOf, formatHunt } = await import('./report.ts');
const options: HuntOptions = { ...values, broken: values.broken, isCalm: calm === true };
const report = await runHunt(options);
console.log(formatHunt(options, report));
const isWhole = options.seconds >= 60 && !options.isCalm && options.batch === 'refuse';
const kind = options.broken === undefined ? options.redis : `broken-${options.broken}`;
if (isWhole) writeResult(`hunt-${kind}`, findingsOf(options, report));
if (statuses) console.log(report.sightings.counts);
process.exit(listViolations(report).length === 0 ? 0 : 1);

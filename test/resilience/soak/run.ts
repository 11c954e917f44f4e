/**
 * Mixed traffic with faults for a long time; prints figures of the process. Exits with 1 if it crashed, hung, leaked
 * sockets, or if its memory grew steadily.
 */
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';

const { minutes, visitors, seed } = readArguments<{ minutes: number; visitors: number; seed: number }>({
  name: 'npm run soak --',
  about: 'Mixed traffic with faults for a long time; exits with 1 after a crash, a hang or a leak.',
  options: [
    ['--minutes <n>', 'duration of the run', 30],
    ['--visitors <n>', 'number of concurrent clients', 24],
    ['--seed <n>', 'seed of requests and faults', 1],
  ],
});
// Imported after the arguments are read, because `--help` does not need it.
const { runSoak } = await import('./soak.ts');
/** 5 MiB in a quarter of an hour. A short run allows the first growth of the heap. A leak is far above both. */
const tolerableMiBPerMinute = minutes >= 10 ? 1 / 3 : 8;
const report = await runSoak({ visitors, seed, durationMs: minutes * 60_000 });
const { figures, requests, disturbances, rssBytesPerMinute, openFilesPerMinute, before, after } = report;
console.table({ before, after });
console.table(report.met);
console.log(`${requests} requests, ${disturbances} faults`);
const grew = rssBytesPerMinute / 2 ** 20 > tolerableMiBPerMinute;
const wrongs = [...report.wrongs, ...(grew ? ['memory grows steadily'] : [])];
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
if (minutes >= 10) {
  writeResult('soak', {
    title: 'Memory and sockets over time',
    command: `npm run soak -- --minutes ${minutes} --visitors ${visitors} --seed ${seed}`,
    promises: [
      {
        promise: 'soak: memory does not grow steadily (at most 0.33 MiB a minute)',
        measured: `${(rssBytesPerMinute / 2 ** 20).toFixed(2)} MiB a minute`,
        isMet: !grew,
      },
      {
        promise: 'soak: no crash, unhandled rejection, lost answer or leaked socket',
        measured: String(report.wrongs.length),
        isMet: report.wrongs.length === 0,
      },
    ],
    figures: [
      ['requests, faults', `${requests}, ${disturbances}`],
      ['open files, growth a minute', openFilesPerMinute.toFixed(2)],
    ],
    details: { figures, met: report.met, wrongs },
  });
}
process.exit(wrongs.length === 0 ? 0 : 1);

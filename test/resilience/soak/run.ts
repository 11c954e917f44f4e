/**
 * Mixed traffic with faults for a long time; prints figures of the process over time. Exits with 1 when it crashed, hung,
 * leaked sockets, or when its memory grew steadily.
 */
import os from 'node:os';
import { readArguments } from '../../../scripts/arguments.ts';
import { writeResult } from '../../../scripts/results.ts';
import type { Figures } from './figures.ts';

const { minutes, visitors, seed } = readArguments<{ minutes: number; visitors: number; seed: number }>({
  name: 'npm run soak --',
  about: 'Mixed traffic with faults for a long time; exits with 1 at a crash, a hang, a leak.',
  options: [
    ['--minutes <n>', 'how long', 30],
    ['--visitors <n>', 'clients at a time', 24],
    ['--seed <n>', 'of what is asked and broken', 1],
  ],
});
// Not before the arguments are read: `--help` needs none of it.
const { runSoak } = await import('./soak.ts');
/** 5 MiB in a quarter of an hour; in a short run what a heap grows by while it settles. A leak is far above both. */
const tolerableMiBPerMinute = minutes >= 10 ? 1 / 3 : 8;
const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);

const load = () => os.loadavg()[1]?.toFixed(1);
const loadBefore = load();
const report = await runSoak({ visitors, seed, durationMs: minutes * 60_000 });
const { figures, requests, disturbances, rssBytesPerMinute, openFilesPerMinute, before, after } = report;
const row = (name: string, one: Figures) =>
  `| ${name} | ${mib(one.rssBytes)} | ${mib(one.rssBytes - one.heapTotalBytes)} | ${mib(one.heapBytes)} | ${mib(one.externalBytes)} | ${one.openFiles} | ${one.activeRequests} |`;
console.log(
  "| | RSS, MiB | without V8's heap | used of that heap | Buffers | open files | requests in flight |\n|---|---|---|---|---|---|---|",
);
console.log(row('before the first request', before));
for (let tenth = 1; tenth <= 10; tenth += 1) {
  const one = figures[Math.ceil((figures.length * tenth) / 10) - 1];
  if (one !== undefined) console.log(row(`after ${(one.atMs / 60_000).toFixed(1)} min`, one));
}
console.log(row('at rest', after));
console.log(`\n${requests} requests, ${disturbances} faults; after the first third RSS grew by`);
console.log(
  `${(rssBytesPerMinute / 2 ** 20).toFixed(2)} MiB a minute, without V8's heap by ${(report.outsideHeapBytesPerMinute / 2 ** 20).toFixed(2)}, open files by ${openFilesPerMinute.toFixed(2)}.`,
);
console.log(`Load of the machine (5 minutes): ${loadBefore} before, ${load()} at the end.`);
console.log(
  `Unhandled rejections, uncaught errors and warnings of Node in the log: ${report.bugs.length}.\n`,
);
const words = Object.entries(report.met).toSorted(([, a], [, b]) => b - a);
console.log(`| what clients saw | times |\n|---|---|`);
for (const [word, times] of words) console.log(`| ${word} | ${times} |`);
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

/**
 * Mixed traffic with faults for a long time; prints figures of the process over time. Exits with 1 when it crashed, hung,
 * leaked sockets, or when its memory grew steadily.
 *
 *     node test/soak/run.ts [--minutes 30] [--visitors 24] [--seed N]
 */
import { parseArgs } from 'node:util';
import type { Figures } from './figures.ts';
import { runSoak } from './soak.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    visitors: { type: 'string', default: '24' },
    seed: { type: 'string', default: '1' },
  },
});
const minutes = Number(values.minutes);
/** 5 MiB in a quarter of an hour; in a short run what a heap grows by while it settles. A leak is far above both. */
const tolerableMiBPerMinute = minutes >= 10 ? 1 / 3 : 8;
const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);

const report = await runSoak({
  visitors: Number(values.visitors),
  seed: Number(values.seed),
  durationMs: minutes * 60_000,
});
const { figures, requests, disturbances, rssBytesPerMinute, openFilesPerMinute, before, after } = report;
const row = (name: string, { rssBytes, heapBytes, openFiles, activeRequests }: Figures) =>
  `| ${name} | ${mib(rssBytes)} | ${mib(heapBytes)} | ${openFiles} | ${activeRequests} |`;
console.log('| | RSS, MiB | heap, MiB | open files | requests in flight |\n|---|---|---|---|---|');
console.log(row('before the first request', before));
for (let tenth = 1; tenth <= 10; tenth += 1) {
  const one = figures[Math.ceil((figures.length * tenth) / 10) - 1];
  if (one !== undefined) console.log(row(`after ${(one.atMs / 60_000).toFixed(1)} min`, one));
}
console.log(row('at rest', after));
console.log(`\n${requests} requests, ${disturbances} faults; behind the first third RSS grew by`);
console.log(
  `${mib(rssBytesPerMinute)} MiB a minute, open files by ${openFilesPerMinute.toFixed(2)} a minute.`,
);
console.log(
  `Unhandled rejections, uncaught errors and warnings of Node in the log: ${report.bugs.length}.\n`,
);
const words = Object.entries(report.met).toSorted(([, a], [, b]) => b - a);
console.log(`| what clients saw | times |\n|---|---|`);
for (const [word, times] of words) console.log(`| ${word} | ${times} |`);
const grew = rssBytesPerMinute / 2 ** 20 > tolerableMiBPerMinute;
const wrongs = [...report.wrongs, ...(grew ? ['memory grows steadily'] : [])];
for (const wrong of wrongs) console.log(`- WRONG: ${wrong}`);
process.exit(wrongs.length === 0 ? 0 : 1);

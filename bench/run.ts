/**
 * npm run bench: CPU time of the proxy process per request; all contestants alternate in one run on this machine. Absolute
 * times mean little on a busy machine; the ratios of consecutive rounds are reliable.
 */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { readArguments } from '../scripts/arguments.ts';
import { writeResult } from '../scripts/results.ts';
import type { BenchCase } from './case.ts';
import type { CaseResult } from './report.ts';

const options = readArguments<{
  rounds?: string;
  seconds: number;
  connections: number;
  case: string;
  quick?: true;
  baseline?: string;
  json?: string;
}>({
  name: 'npm run bench --',
  about:
    'CPU time per request, all contestants in turn. The tables go to stdout, a whole run also to results/bench.json.',
  options: [
    ['--rounds <n>', 'counted rounds of every contestant (default: 5)'],
    ['--seconds <n>', 'whole seconds of one round', 1],
    ['--connections <n>', 'kept-alive connections of cases that set no number', 64],
    ['--case <word>', 'only cases whose name contains it', ''],
    ['--quick', '3 rounds and a short warm-up: too few for reliable figures'],
    ['--baseline <folder>', 'compares this checkout with the one in that folder instead'],
    ['--json <file>', 'write the figures as JSON too'],
  ],
});

// Imported after the arguments are read, because `--help` does not need it.
const { checkPromises } = await import('./case.ts');
const { baselineCases } = await import('./cases/baseline.ts');
const { entityTagCases } = await import('./cases/entity-tags.ts');
const { forwardingCases } = await import('./cases/forwarding.ts');
const { latencyCases } = await import('./cases/latency.ts');
const { tableCases } = await import('./cases/tables.ts');
const { workerCases } = await import('./cases/workers.ts');
const { startUpstream } = await import('./contestants.ts');
const { measure } = await import('./measure.ts');
const { stopAll } = await import('./programs.ts');
const { findingsOf, promisesToMarkdown, toMarkdown } = await import('./report.ts');
const { Stage } = await import('./stage.ts');

const effort = {
  rounds: Number(options.rounds ?? (options.quick ? 3 : 5)),
  seconds: options.seconds,
  connections: options.connections,
  warmUpRequests: options.quick ? 5_000 : 40_000,
};

async function run({ name, connections = effort.connections, targets = [], prepare }: BenchCase) {
  process.stderr.write(`bench: ${name} `);
  const { entries, leftOut = [] } = await prepare();
  const rows = await measure(entries, { ...effort, connections });
  const result: CaseResult = { name, connections, rows, verdicts: checkPromises(targets, rows), leftOut };
  console.log(toMarkdown(result));
  return result;
}

try {
  const startedAt = new Date();
  const machine = `${startedAt.toISOString().slice(0, 16)}Z, ${os.availableParallelism()} processors (${os.cpus()[0]?.model})`;
  const about = `${machine}, node ${process.version}, load average ${loadAverage()} at the start, ${effort.rounds} rounds of ${effort.seconds} s.`;
  console.log(`${about}\n`);
  const stage = new Stage((await startUpstream()).url);
  const cases =
    options.baseline === undefined
      ? [forwardingCases, latencyCases, entityTagCases, tableCases, workerCases].flatMap((casesOf) =>
          casesOf(stage),
        )
      : baselineCases(stage, path.resolve(options.baseline));
  const results: CaseResult[] = [];
  for (const one of cases.filter(({ name }) => name.includes(options.case))) {
    try {
      results.push(await run(one));
    } catch (error) {
      console.error(`\nbench: ${one.name}:`, error);
      process.exitCode = 1;
    }
  }
  console.log(promisesToMarkdown(results));
  const seconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
  const end = `Load average at the end ${loadAverage()}; the run took ${seconds} s.`;
  console.log(end);
  const isWhole =
    options.case === '' &&
    !options.quick &&
    options.baseline === undefined &&
    results.length === cases.length;
  if (isWhole) writeResult('bench', { title: 'Speed', command: 'npm run bench', ...findingsOf(results) });
  if (options.json)
    writeFileSync(options.json, `${JSON.stringify({ startedAt, effort, results }, null, 2)}\n`);
} finally {
  await stopAll();
}

function loadAverage(): string {
  return os
    .loadavg()
    .map((one) => one.toFixed(1))
    .join(' ');
}

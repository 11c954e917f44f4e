import type { Contestant } from './contestants.ts';
import { loadProcessor } from './contestants.ts';
import { type LoadRequest, type LoadResult, load } from './load.ts';
import { cpuMicroseconds, peakMemoryMiB, residentMemoryMiB } from './process-cpu.ts';

export interface Row {
  readonly name: string;
  /** CPU microseconds of the proxy per request, in each round, and their median. */
  readonly cpu: { readonly median: number; readonly rounds: readonly number[] };
  readonly perSecond: number;
  readonly latencyMs: LoadResult['latencyMs'];
  /** Peak, and resident memory after the first and the last counted round. */
  readonly memoryMiB: { readonly peak: number; readonly first: number; readonly last: number };
  /** Answers of another status, and broken connections. */
  readonly errors: number;
  readonly errorKinds: Readonly<Record<string, number>>;
}

export interface Entry {
  readonly contestant: Contestant;
  readonly request: LoadRequest;
  /** Name in the table. Default: the contestant's name. */
  readonly name?: string;
  /** Its rate as a share of its full speed, which the warm-up measures; bounded by the load generator. */
  readonly share?: number;
}

/** Maximum number of requests a second that the load generator sends on time at a fixed rate, on the upstream's processor. */
const mostPerSecond = 15_000;

export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: number;
  /** Requests that an entry answers before the first counted round; Node's compilers need about ten thousand. */
  readonly warmUpRequests: number;
}

interface Sample {
  readonly cpu: number;
  readonly residentMiB: number;
  readonly result: LoadResult;
}

/** Runs all entries in every round, so that drift of the machine affects all alike. */
export async function measure(entries: readonly Entry[], effort: Effort): Promise<Row[]> {
  const samples = entries.map((): Sample[] => []);
  const asked: Entry[] = [];
  for (const entry of entries) asked.push(atShare(entry, await warmUp(entry, effort)));
  for (let round = 0; round < effort.rounds; round++) {
    for (const [i, entry] of asked.entries()) samples[i]?.push(await sample(entry, effort));
    process.stderr.write('.');
  }
  process.stderr.write('\n');
  return asked.map((entry, i) => rowOf(entry, samples[i] ?? []));
}

function atShare(entry: Entry, fullSpeed: number): Entry {
  if (entry.share === undefined) return entry;
  const wanted = Math.round(fullSpeed * entry.share);
  const perSecond = Math.min(wanted, mostPerSecond);
  const name = `${entry.name ?? entry.contestant.name} at ${perSecond.toLocaleString('en')} a second`;
  const isLess = wanted > perSecond;
  return {
    ...entry,
    name: isLess ? `${name} (not ${wanted.toLocaleString('en')}: more than the load generator sends)` : name,
    request: { ...entry.request, perSecond },
  };
}

/** Resolves to the full speed: the most requests in one second. */
async function warmUp(entry: Entry, effort: Effort): Promise<number> {
  const atFullSpeed = { ...entry, request: { ...entry.request, perSecond: undefined } };
  let fullSpeed = 0;
  // Bounded, for a proxy that answers only errors or nothing.
  for (let asked = 0, tries = 0; asked < effort.warmUpRequests && tries < 20; tries++) {
    const { requests, perSecond } = (await sample(atFullSpeed, effort)).result;
    asked += requests;
    fullSpeed = Math.max(fullSpeed, perSecond);
  }
  return fullSpeed;
}

async function sample({ contestant, request }: Entry, effort: Effort): Promise<Sample> {
  const before = cpuMicroseconds(contestant.pids);
  const result = await load(contestant.url, request, effort.connections, effort.seconds, loadProcessor);
  const cpu = (cpuMicroseconds(contestant.pids) - before) / Math.max(1, result.requests);
  return { cpu, result, residentMiB: sum(contestant.pids.map(residentMemoryMiB)) };
}

function rowOf({ contestant, name }: Entry, samples: readonly Sample[]): Row {
  const rounds = samples.map((one) => one.cpu);
  const latency = (key: keyof LoadResult['latencyMs']) =>
    median(samples.map((one) => one.result.latencyMs[key]));
  return {
    name: name ?? contestant.name,
    cpu: { median: median(rounds), rounds },
    perSecond: median(samples.map((one) => one.result.perSecond)),
    latencyMs: { p50: latency('p50'), p99: latency('p99'), p999: latency('p999'), max: latency('max') },
    memoryMiB: {
      peak: sum(contestant.pids.map(peakMemoryMiB)),
      first: samples[0]?.residentMiB ?? 0,
      last: samples.at(-1)?.residentMiB ?? 0,
    },
    errors: sum(samples.map((one) => one.result.errors)),
    errorKinds: addUp(samples.map((one) => one.result.errorKinds ?? {})),
  };
}

/** Median of the ratios of each round, whose two sides were measured directly after one another. */
export function cpuRatio(row: Row, against: Row): number {
  return median(row.cpu.rounds.map((cpu, round) => cpu / (against.cpu.rounds[round] ?? Number.NaN)));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, one) => total + one, 0);
}

function addUp(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const total: Record<string, number> = {};
  for (const [kind, times] of all.flatMap(Object.entries)) total[kind] = (total[kind] ?? 0) + times;
  return total;
}

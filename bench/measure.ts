import type { Contestant } from './contestants.ts';
import { loadProcessor } from './contestants.ts';
import { type LoadRequest, type LoadResult, load } from './load.ts';
import { cpuMicroseconds, peakMemoryMiB } from './process-cpu.ts';

export interface Row {
  readonly name: string;
  /** CPU microseconds of the proxy a request: median over the rounds, and the spread. */
  readonly cpu: { readonly median: number; readonly least: number; readonly most: number };
  readonly perSecond: number;
  readonly latencyMs: LoadResult['latencyMs'];
  readonly peakMemoryMiB: number;
  readonly errors: number;
}

export interface Entry {
  readonly contestant: Contestant;
  readonly request: LoadRequest;
}

/** All entries in turn, round after round, so that a machine whose speed drifts is as unfair to one as to the other. */
export async function measure(
  entries: readonly Entry[],
  rounds: number,
  seconds: number,
  connections: number,
): Promise<Row[]> {
  const samples = entries.map((): { cpu: number; result: LoadResult }[] => []);
  for (let round = -1; round < rounds; round++) {
    for (const [i, { contestant, request }] of entries.entries()) {
      const before = cpuMicroseconds(contestant.pids);
      const result = await load(contestant.url, request, connections, seconds, loadProcessor);
      const cpu = (cpuMicroseconds(contestant.pids) - before) / Math.max(1, result.requests);
      // The round before the first warms caches and compilers and is not counted.
      if (round >= 0) samples[i]?.push({ cpu, result });
    }
    process.stderr.write('.');
  }
  process.stderr.write('\n');
  return entries.map(({ contestant }, i) => {
    const own = samples[i] ?? [];
    const cpu = own.map((one) => one.cpu);
    const latency = (key: keyof LoadResult['latencyMs']) =>
      median(own.map((one) => one.result.latencyMs[key]));
    return {
      name: contestant.name,
      cpu: { median: median(cpu), least: Math.min(...cpu), most: Math.max(...cpu) },
      perSecond: median(own.map((one) => one.result.perSecond)),
      latencyMs: { p50: latency('p50'), p99: latency('p99'), p999: latency('p999') },
      peakMemoryMiB: Math.max(...contestant.pids.map(peakMemoryMiB)),
      errors: own.reduce((sum, one) => sum + one.result.errors, 0),
    };
  });
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

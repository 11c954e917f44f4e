import { cpuRatio, type Entry, type Row } from './measure.ts';

/** A promise: one row of measurements is compared with another. */
export interface Target {
  readonly row: string;
  /** The other row; unused for `peak`. */
  readonly against: string;
  /**
   * `added`: difference in CPU microseconds a request; `p50`, `p99`, `p999`: ratio of latencies; `later`: difference of the
   * medians of latency in milliseconds; `cpu`: ratio of CPU time a request; `time`: ratio of the time for equally many
   * requests; `peak`: peak memory in MiB.
   */
  readonly of: 'cpu' | 'p50' | 'p99' | 'p999' | 'later' | 'added' | 'time' | 'peak';
  readonly most: number;
}

export function describeTarget({ of, most, against }: Target): string {
  if (of === 'added') return `CPU ≤ ${against} + ${most} us`;
  if (of === 'later') return `p50 ≤ ${against} + ${most} ms`;
  if (of === 'peak') return `peak memory ≤ ${most} MiB`;
  const what = { cpu: 'CPU', time: 'time', p50: 'p50', p99: 'p99', p999: 'p99.9' }[of];
  return `${what} ≤ ${most} × ${against}`;
}

export interface BenchCase {
  readonly name: string;
  readonly connections?: number;
  readonly targets?: readonly Target[];
  /** Starts the contestants. `leftOut`: why entries are missing; without any entry the whole case is left out. */
  prepare(): Promise<{ readonly entries: readonly Entry[]; readonly leftOut?: readonly string[] }>;
}

export interface Verdict extends Target {
  readonly value: number;
  readonly isMet: boolean;
}

/** Compares the targets for which both rows were measured. */
export function checkPromises(targets: readonly Target[], rows: readonly Row[]): Verdict[] {
  return targets.flatMap((target) => {
    const row = rows.find(({ name }) => name === target.row);
    const against = target.of === 'peak' ? row : rows.find(({ name }) => name === target.against);
    if (row === undefined || against === undefined) return [];
    const value = measured(target, row, against);
    return [{ ...target, value, isMet: value <= target.most }];
  });
}

function measured({ of }: Target, row: Row, against: Row): number {
  if (of === 'peak') return row.memoryMiB.peak;
  if (of === 'p50' || of === 'p99' || of === 'p999') return row.latencyMs[of] / against.latencyMs[of];
  if (of === 'later') return row.latencyMs.p50 - against.latencyMs.p50;
  if (of === 'time') return against.perSecond / row.perSecond;
  return of === 'added' ? row.cpu.median - against.cpu.median : cpuRatio(row, against);
}

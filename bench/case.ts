import { cpuRatio, type Entry, type Row } from './measure.ts';

/** A promise, and what it is held against. */
export interface Target {
  readonly row: string;
  /** Another row; for `peak` nothing. */
  readonly against: string;
  /**
   * `added`: CPU microseconds more a request; `p50`, `p99`, `p999`: ratio of latencies; `later`: milliseconds more at the
   * median; `cpu`: ratio of CPU a request; `time`: ratio of the time for as many requests; `peak`: MiB of memory.
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
  /** Starts what it needs. Entries that cannot be had are left out; `undefined` with a word why: the whole case. */
  prepare(): Promise<{ readonly entries: readonly Entry[]; readonly leftOut?: readonly string[] }>;
}

export interface Verdict extends Target {
  readonly value: number;
  readonly isMet: boolean;
}

/** Targets whose two sides were both measured. */
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

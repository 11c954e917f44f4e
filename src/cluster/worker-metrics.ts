import { combineCounts, type Exposition, exposeAggregated, type MetricValues } from '../telemetry/metrics.ts';

/** What workers have counted, those that are gone included: sums that went down would look like restarts. */
export interface WorkerMetrics {
  /** What each process says now, and beside it the primary's own values. */
  expose(answers: readonly ProcessValues[], own: MetricValues): Promise<Exposition>;
  /** The process is gone: what it said last stays. */
  retire(pid: number): void;
}

export interface ProcessValues {
  readonly pid: number;
  readonly answer: MetricValues;
}

export function createWorkerMetrics(): WorkerMetrics {
  const last = new Map<number, MetricValues>();
  const gone: MetricValues[] = [];
  let retired: MetricValues = [];
  return {
    async expose(answers, own) {
      for (const { pid, answer } of answers) last.set(pid, answer);
      const newlyGone = gone.splice(0);
      if (newlyGone.length > 0) retired = await combineCounts([retired, ...newlyGone]);
      // Of one that is too busy to answer, what it said before.
      return exposeAggregated([...last.values(), retired, own]);
    },
    retire(pid) {
      const values = last.get(pid);
      last.delete(pid);
      if (values !== undefined) gone.push(values);
    },
  };
}

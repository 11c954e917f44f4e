import type { Inside } from '../app/inside.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { mergeParts, mergeReadiness } from './merge.ts';
import type { Supervisor } from './supervisor.ts';
import type { WorkerMetrics } from './worker-metrics.ts';

export interface InsideWorkersOptions {
  readonly count: number;
  readonly supervisor: Supervisor;
  readonly workerMetrics: WorkerMetrics;
  /** Of the primary itself. */
  readonly metrics: Metrics;
  readonly hasResolver: boolean;
  isDraining(): boolean;
}

/** The answers of all workers together. */
export function createInsideWorkers(options: InsideWorkersOptions): Inside {
  const { count, supervisor, workerMetrics, metrics } = options;
  return {
    async readiness() {
      // Nobody is asked: workers on their way out would be waited for.
      if (options.isDraining()) return { ready: false, reasons: ['draining'] };
      const answers = await supervisor.askAll('readiness');
      return mergeReadiness(
        count,
        answers.map(({ answer }) => answer),
      );
    },
    metrics: async () => workerMetrics.expose(await supervisor.askAll('metrics'), await metrics.values()),
    parts: async (upstream) =>
      mergeParts((await supervisor.askAll('parts', upstream)).map(({ answer }) => answer)),
    otherProblems: async () => (await supervisor.askOne('otherProblems')) ?? [],
    // The others hear of it through the store, as every other replica does.
    purge: options.hasResolver
      ? async (which) => (await supervisor.askOne('purge', which)) ?? 'unavailable'
      : undefined,
  };
}

import type { SystemState } from '../admin/system-endpoints.ts';
import { type ComponentHealth, type Drain, healthOfAll, type ProcessStatus } from '../app/process-status.ts';
import type { Config } from '../config/schema.ts';
import { reject } from '../http/rejection.ts';
import type { Component, HealthDetail } from '../lib/component.ts';
import { notCounted } from '../rollout/counts.ts';
import { combineCounts, exposeAggregated, type Metrics, type MetricValues } from '../telemetry/metrics.ts';
import type { Answers, Supervisor } from './supervisor.ts';

interface ClusterStatusOptions {
  readonly count: number;
  readonly supervisor: Supervisor;
  readonly workerMetrics: WorkerMetrics;
  /** The metrics of the primary itself. */
  readonly metrics: Metrics;
  readonly config: Pick<Config, 'urlResolver' | 'rollout'>;
  readonly drain: Drain;
  /** The primary's list. Workers never get a list that the primary has refused. */
  readonly list: Component;
}

/** The status of all workers together. */
export function createClusterStatus(options: ClusterStatusOptions): ProcessStatus {
  const { count, supervisor, workerMetrics, metrics } = options;
  return {
    async health() {
      // Do not ask the workers: some have ended, and would not answer.
      if (options.drain.hasBegun) return healthOfAll([options.drain]);
      const answers = await supervisor.askAll('health');
      const ofWorkers = mergeHealth(
        count,
        answers.map(({ answer }) => answer),
      );
      return [...healthOfAll([options.list]), ...ofWorkers];
    },
    metrics: async () => workerMetrics.expose(await supervisor.askAll('metrics'), await metrics.values()),
    // One worker is enough: the others hear of the purge through the store, as other replicas do.
    purge: options.config.urlResolver
      ? async (which) => (await supervisor.askOne('purge', which)) ?? 'unavailable'
      : undefined,
    system: async () =>
      mergeSystem(
        count,
        (await supervisor.askAll('system')).map(({ answer }) => answer),
      ),
    // One worker is enough: all have the same keys.
    async inspectToken(token, asked) {
      const inspection = await supervisor.askOne('inspectToken', { token, asked });
      return inspection ?? { facts: {}, verdict: reject('keys-unavailable', { reason: 'no-worker' }) };
    },
    // One worker is enough: several workers need a shared store, which has the counts of all.
    rollout: options.config.rollout
      ? async () => (await supervisor.askOne('rollout')) ?? notCounted('no worker answers')
      : undefined,
  };
}

/** Lists all processes. Keys and sharing replicas are the same for each. */
function mergeSystem(workers: number, answers: readonly SystemState[]): SystemState {
  const { keys = [], sharing = null } = answers[0] ?? {};
  return { processes: answers.flatMap(({ processes }) => processes), workers, keys, sharing };
}

/** Metrics of all workers. Counts of ended workers stay in the sums: a sum that falls would look like a restart. */
export class WorkerMetrics {
  /** The last values of each worker, also of one that was too busy for the last scrape. */
  readonly #last = new Map<number, MetricValues>();
  readonly #gone: MetricValues[] = [];
  #retired: MetricValues = [];

  /** What each worker answered, together with the primary's own values. */
  async expose(answers: Answers<'metrics'>, own: MetricValues): Promise<string> {
    for (const { pid, answer } of answers) this.#last.set(pid, answer);
    const gone = this.#gone.splice(0);
    if (gone.length > 0) this.#retired = await combineCounts([this.#retired, ...gone]);
    return exposeAggregated([...this.#last.values(), this.#retired, own]);
  }

  /** Called when a process has ended: its last counts stay. */
  retire(pid: number): void {
    const values = this.#last.get(pid);
    this.#last.delete(pid);
    if (values !== undefined) this.#gone.push(values);
  }
}

/**
 * A component has the state of its worst worker; with `seenMs`, of the worker with the latest observation. Numbers are
 * combined over all workers. A component is ready if it is ready in one worker. Exported for its tests.
 */
export function mergeHealth(
  count: number,
  answers: readonly (readonly ComponentHealth[])[],
): ComponentHealth[] {
  const [first = []] = answers;
  const merged = first.map(({ name }) =>
    mergeComponent(
      count,
      answers.flatMap((healths) => healths.filter((health) => health.name === name)),
    ),
  );
  const silent = count - answers.length;
  if (silent === 0) return merged;
  const reasons = [`${silent} of ${count} workers not serving`];
  const isUnready = answers.length === 0;
  return [{ name: 'workers', title: false, status: 'degraded', reasons, isUnready }, ...merged];
}

const badness = ['off', 'ok', 'degraded', 'down'] as const;

function mergeComponent(count: number, healths: readonly ComponentHealth[]): ComponentHealth {
  const isSeen = healths.some(({ seenMs }) => seenMs !== undefined);
  const rank = ({ seenMs = 0, status }: ComponentHealth) => (isSeen ? seenMs : badness.indexOf(status));
  const counting = healths.reduce((a, b) => (rank(b) > rank(a) ? b : a));
  const labels = new Set(healths.flatMap(({ details = [] }) => details.map(({ label }) => label)));
  return {
    ...counting,
    reasons: isSeen ? counting.reasons : mergeReasons(count, healths),
    isUnready: healths.every(({ isUnready }) => isUnready === true),
    details: [...labels].flatMap((label) => mergeDetail(label, counting, healths) ?? []),
  };
}

/** A reason that only some workers give says how many. */
function mergeReasons(count: number, healths: readonly ComponentHealth[]): string[] {
  const said = new Map<string, number>();
  for (const { reasons } of healths) {
    for (const reason of new Set(reasons)) said.set(reason, (said.get(reason) ?? 0) + 1);
  }
  return [...said].map(([reason, times]) =>
    times === count ? reason : `${reason} (${times} of ${count} workers)`,
  );
}

function mergeDetail(
  label: string,
  counting: ComponentHealth,
  healths: readonly ComponentHealth[],
): HealthDetail | undefined {
  const find = ({ details }: ComponentHealth) => details?.find((detail) => detail.label === label);
  const all = healths.flatMap((health) => find(health) ?? []);
  const detail = find(counting) ?? all[0];
  const numbers = all.map(({ value }) => value).filter((value) => typeof value === 'number');
  if (detail?.combine === undefined || numbers.length === 0) return detail;
  const value = numbers.reduce((a, b) => (detail.combine === 'max' ? Math.max(a, b) : a + b));
  return { ...detail, value };
}

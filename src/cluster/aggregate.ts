import type { Readiness } from '../admin/admin-server.ts';
import type { PartState } from '../admin/incidents.ts';
import type { KeyDescription, SystemState } from '../admin/system-endpoints.ts';
import type { ProcessStatus } from '../app/process-status.ts';
import type { HealthDetail } from '../lib/component.ts';
import {
  combineCounts,
  type Exposition,
  exposeAggregated,
  type Metrics,
  type MetricValues,
} from '../telemetry/metrics.ts';
import type { Supervisor } from './supervisor.ts';

export interface ClusterStatusOptions {
  readonly count: number;
  readonly supervisor: Supervisor;
  readonly workerMetrics: WorkerMetrics;
  /** Of the primary itself. */
  readonly metrics: Metrics;
  readonly hasResolver: boolean;
  readonly watchesTokens: boolean;
  isDraining(): boolean;
}

/** The answers of all workers together. */
export function createClusterStatus(options: ClusterStatusOptions): ProcessStatus {
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
    system: async () =>
      mergeSystem(
        count,
        (await supervisor.askAll('system')).map(({ answer }) => answer),
      ),
    // Their store is shared: one knows it for all.
    census: options.watchesTokens ? () => supervisor.askOne('census') : undefined,
  };
}

/** All processes; each key once, as old as who has had it longest says. */
export function mergeSystem(workers: number, answers: readonly SystemState[]): SystemState {
  const keys = new Map<string, KeyDescription>();
  for (const key of answers.flatMap((answer) => answer.keys)) {
    const name = JSON.stringify([key.kid, key.algorithms, key.fingerprint]);
    const known = keys.get(name);
    if (known === undefined || key.sinceMs < known.sinceMs) keys.set(name, key);
  }
  const sharing = answers.flatMap((answer) => answer.sharing ?? []);
  return {
    processes: answers.flatMap(({ processes }) => processes),
    workers,
    keys: [...keys.values()],
    sharing: sharing.length === 0 ? null : Math.max(...sharing),
  };
}

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

/** Ready when one worker is. What not all of them say is said with their number. */
export function mergeReadiness(count: number, answers: readonly Readiness[]): Readiness {
  const said = new Map<string, number>();
  for (const { reasons } of answers) {
    for (const reason of new Set(reasons)) said.set(reason, (said.get(reason) ?? 0) + 1);
  }
  const reasons = [...said].map(([reason, times]) =>
    times === count ? reason : `${reason} (${times} of ${count} workers)`,
  );
  const silent = count - answers.length;
  if (silent > 0) reasons.unshift(`${silent} of ${count} workers not serving`);
  return { ready: answers.some(({ ready }) => ready), reasons };
}

const badness = ['off', 'ok', 'limping', 'down'] as const;

/** Numbers that are the same in every process, by part; all others are added up. */
const common: Readonly<Record<string, readonly string[]>> = {
  upstream: ['answers', 'failures'],
  keys: ['usable', 'unusable'],
  'url-resolver': ['file rows'],
};

/** Each part as its worst worker has it, with the numbers of all. */
export function mergeParts(answers: readonly (readonly PartState[])[]): PartState[] {
  const [first = []] = answers;
  return first.map(({ id }) => {
    const states = answers.flatMap((parts) => parts.filter((part) => part.id === id));
    const worst = states.reduce((a, b) => (badness.indexOf(b.status) > badness.indexOf(a.status) ? b : a));
    const labels = [...new Set(states.flatMap(({ facts }) => facts.map(({ label }) => label)))];
    const facts = labels.map((label) => {
      const of = states.flatMap((state) => state.facts.filter((fact) => fact.label === label));
      return mergeFact(of, common[id]?.includes(label) === true);
    });
    return { ...worst, facts };
  });
}

function mergeFact(facts: readonly HealthDetail[], isCommon: boolean): HealthDetail {
  const [first] = facts as readonly [HealthDetail, ...HealthDetail[]];
  const numbers = facts.map(({ value }) => value).filter((value) => typeof value === 'number');
  if (numbers.length === 0) return first;
  const isLatest = first.unit !== undefined || isCommon;
  const value = isLatest ? Math.max(...numbers) : numbers.reduce((sum, number) => sum + number, 0);
  return { ...first, value };
}

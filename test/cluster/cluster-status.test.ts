import { describe, expect, it } from 'vitest';
import { Drain, readinessOf } from '../../src/app/process-status.ts';
import { createClusterStatus, WorkerMetrics } from '../../src/cluster/aggregate.ts';
import type { Supervisor } from '../../src/cluster/supervisor.ts';
import { reject } from '../../src/http/rejection.ts';
import { counter, gauge, healthOf } from '../../src/lib/component.ts';
import type { RolloutState } from '../../src/rollout/rollout.ts';
import { createMetrics } from '../../src/telemetry/metrics.ts';

const everything = { hasResolver: true, countsRollout: true };

/** A cluster of two places whose workers answer what the test says; `asked` has every question. */
function cluster(answers: Readonly<Record<string, readonly unknown[]>>, features = everything) {
  const asked: unknown[][] = [];
  const drain = new Drain();
  const supervisor = {
    async askAll(name: string) {
      asked.push([name]);
      return (answers[name] ?? []).map((answer, i) => ({ pid: i + 1, answer }));
    },
    async askOne(name: string, argument: unknown) {
      asked.push([name, argument]);
      return answers[name]?.[0];
    },
  } as unknown as Supervisor;
  const metrics = createMetrics({ ofProcess: false });
  metrics.register(gauge('workers', 'Of the primary.', 'sum', () => 2));
  const list = { name: 'protected-list', title: false as const, health: () => healthOf(['list: broken']) };
  const options = {
    count: 2,
    supervisor,
    workerMetrics: new WorkerMetrics(),
    metrics,
    drain,
    list,
    ...features,
  };
  return { status: createClusterStatus(options), asked, drain };
}

/** The values of a process that has counted so much. */
function valuesOf(count: number) {
  const metrics = createMetrics({ ofProcess: false });
  metrics.register(
    counter('looks', 'Looks.', () => count),
    gauge('open', 'Open.', 'sum', () => count),
  );
  return metrics.values();
}

describe('what the primary answers for its workers', () => {
  it('nobody is asked once it goes', async () => {
    const { status, asked, drain } = cluster({ health: [[{ name: 'protected-list', ...healthOf([]) }]] });
    expect(readinessOf(await status.health())).toEqual({
      ready: true,
      reasons: ['list: broken', '1 of 2 workers not serving'],
    });
    expect(asked).toEqual([['health']]);
    drain.begin();
    expect(readinessOf(await status.health())).toEqual({ ready: false, reasons: ['draining'] });
    expect(asked).toHaveLength(1);
  });

  it('metrics are those of all workers and its own', async () => {
    const { status } = cluster({ metrics: [await valuesOf(3), await valuesOf(4)] });
    const { body } = await status.metrics();
    expect(body.split('\n')).toEqual(expect.arrayContaining(['looks_total 7', 'open 7', 'workers 2']));
  });

  it('a purge is done by any one worker; without a worker it is "unavailable"', async () => {
    const which = { kind: 'all' } as never;
    const { status, asked } = cluster({ purge: ['purged'] });
    expect(await status.purge?.(which)).toBe('purged');
    expect(asked).toEqual([['purge', which]]);
    expect(await cluster({}).status.purge?.(which)).toBe('unavailable');
  });

  it('a token is inspected by any one worker; without a worker there are no keys', async () => {
    const inspection = { checks: [], verdict: 'a verdict' };
    const { status, asked } = cluster({ inspectToken: [inspection] });
    expect(await status.inspectToken('token', { scopes: ['a'] })).toEqual(inspection);
    await status.inspectToken('token');
    expect(asked).toEqual([
      ['inspectToken', { token: 'token', asked: { scopes: ['a'] } }],
      ['inspectToken', { token: 'token', asked: undefined }],
    ]);
    expect(await cluster({}).status.inspectToken('token')).toEqual({
      checks: [],
      verdict: reject('keys-unavailable', { reason: 'no-worker' }),
    });
  });

  it('the system is told by all', async () => {
    const system = { processes: [{ pid: 7 }], workers: 1, keys: [], sharing: 3 };
    const { status, asked } = cluster({ system: [system, system] });
    expect(await status.system()).toEqual({
      ...{ processes: [{ pid: 7 }, { pid: 7 }], workers: 2, keys: [], sharing: 3 },
    });
    expect(asked).toEqual([['system']]);
  });

  it('who does not count refusals, or does not answer, is missing from the rollout', async () => {
    const state: RolloutState = {
      ...{ shared: undefined, hasStore: false, here: [], askedHere: {}, startedMs: 5, rowsSince: {} },
      ...{ writtenMs: null, leftOutSinceMs: null, rules: 'one' },
    };
    const problemsOf = async (...answers: unknown[]) =>
      (await cluster({ rollout: answers }).status.rollout?.())?.problems;
    expect(await problemsOf(state, state)).toEqual([]);
    expect(await problemsOf(state, undefined)).toEqual(['1 of the workers did not answer']);
    expect(await problemsOf()).toEqual(['2 of the workers did not answer']);
  });

  it('what is not configured is not there to be asked', () => {
    const { purge, rollout } = cluster({}, { hasResolver: false, countsRollout: false }).status;
    expect([purge, rollout]).toEqual([undefined, undefined]);
  });
});

describe('metrics of workers', () => {
  it('of one that is too busy are what it said before; of one that is gone its counts stay, once', async () => {
    const metrics = new WorkerMetrics();
    const linesOf = async (...answers: readonly (readonly [number, number])[]) => {
      const said = answers.map(async ([pid, count]) => ({ pid, answer: await valuesOf(count) }));
      const { body } = await metrics.expose(await Promise.all(said), []);
      return body.split('\n').filter((line) => /^(looks_total|open) /.test(line));
    };
    expect(await linesOf([1, 10], [2, 1])).toEqual(['looks_total 11', 'open 11']);
    expect(await linesOf([1, 20])).toEqual(['looks_total 21', 'open 21']);
    metrics.retire(1);
    metrics.retire(1);
    metrics.retire(99);
    expect(await linesOf([2, 2])).toEqual(['looks_total 22', 'open 2']);
    metrics.retire(2);
    expect(await linesOf([3, 5])).toEqual(['looks_total 27', 'open 5']);
    expect(await linesOf([3, 5])).toEqual(['looks_total 27', 'open 5']);
  });
});

import { describe, expect, it } from 'vitest';
import { Drain, readinessOf } from '../../../src/app/process-status.ts';
import { createClusterStatus, WorkerMetrics } from '../../../src/cluster/aggregate.ts';
import type { Supervisor } from '../../../src/cluster/supervisor.ts';
import { healthOf } from '../../../src/lib/component.ts';
import { createMetrics } from '../../../src/telemetry/metrics.ts';

const everything: object = { urlResolver: {}, rollout: {} };

/** A cluster of two workers that answer as the test says; `asked` has every question. */
function cluster(answers: Readonly<Record<string, readonly unknown[]>>, config = everything) {
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
  const list = { name: 'protected-list', title: false as const, health: () => healthOf(['list: broken']) };
  const options = {
    count: 2,
    supervisor,
    workerMetrics: new WorkerMetrics(),
    metrics,
    drain,
    list,
    config: config as never,
  };
  return { status: createClusterStatus(options), asked, drain };
}

describe('the answers of the primary for its workers', () => {
  it('during a drain no worker is asked', async () => {
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

  it('a purge is done by any one worker; without a worker it is "unavailable"', async () => {
    const which = { kind: 'all' } as never;
    const { status, asked } = cluster({ purge: ['purged'] });
    expect(await status.purge?.(which)).toBe('purged');
    expect(asked).toEqual([['purge', which]]);
    expect(await cluster({}).status.purge?.(which)).toBe('unavailable');
  });

  it('a feature that is not configured has no function', () => {
    const { purge, rollout } = cluster({}, { urlResolver: false, rollout: false }).status;
    expect([purge, rollout]).toEqual([undefined, undefined]);
  });
});

import { expect, it, onTestFinished, vi } from 'vitest';
import { createFilters, type FilterDependencies } from '../../../src/app/filter-definition.ts';
import { filterDefinitions } from '../../../src/app/filters.ts';
import { conditionOf, Drain, healthOfAll, readinessOf } from '../../../src/app/process-status.ts';
import type { Config } from '../../../src/config/schema.ts';
import { type Component, healthOf, total } from '../../../src/lib/component.ts';
import { DecisionCounts } from '../../../src/telemetry/decision-counts.ts';
import { createUpstreamComponent } from '../../../src/upstream/upstream-component.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

const problem = { file: 'list.yaml', line: 1, column: 2, severity: 'error', text: 'no row' } as const;
const components: readonly Component[] = [
  {
    name: 'keys',
    title: 'Keys',
    health: () => healthOf(['not refreshed'], { details: [total('loads', 3)] }),
  },
  { name: 'list', title: false, health: () => healthOf(['list: no row'], { problems: [problem] }) },
  { name: 'silent' },
  { name: 'plain', health: () => healthOf([]) },
  { name: 'log', title: false, health: () => healthOf(['log: lost']) },
];

it('readiness, tiles and problems come from the components only', () => {
  expect(conditionOf(healthOfAll(components))).toEqual({
    ready: true,
    reasons: ['not refreshed', 'list: no row', 'log: lost'],
    others: ['log: lost'],
    parts: [
      {
        id: 'keys',
        title: 'Keys',
        status: 'degraded',
        text: 'not refreshed',
        // The page does not need the rule that combines workers.
        facts: [{ label: 'loads', value: 3 }],
      },
      { id: 'plain', title: 'plain', status: 'ok', text: 'it is well', facts: [] },
    ],
    problems: [problem],
  });
});

it('a process that drains is not ready, and says so first', () => {
  const drain = new Drain();
  const reasons = ['not refreshed', 'list: no row', 'log: lost'];
  const readiness = () => readinessOf(healthOfAll([drain, ...components]));
  expect(readiness().ready).toBe(true);
  drain.begin();
  expect(readiness()).toEqual({ ready: false, reasons: ['draining', ...reasons] });
});

it('the tile of a filter that is switched off says so', () => {
  const config = {
    entityTags: false,
    urlResolver: false,
    refreshTokens: false,
    rateLimits: false,
  } as unknown as Config;
  const wanted = filterDefinitions.filter(({ title }) => title !== undefined);
  const { components: off } = createFilters({ config } as FilterDependencies, wanted);
  expect(conditionOf(healthOfAll(off)).parts.map(({ id, status, text }) => [id, status, text])).toEqual(
    ['rate-limits', 'url-resolver', 'refresh-tokens', 'entity-tags'].map((id) => [id, 'off', 'switched off']),
  );
});

it('exchanges decide the state of the upstream; a failure is shown for a minute', () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  const forwarder = { inFlight: 2, queued: 1, close: async () => {} };
  const counts = new DecisionCounts();
  const upstream = createUpstreamComponent('http://shop', forwarder, counts.shop);
  const seen = () => {
    const { status, reasons, text, seenMs } = upstream.health();
    return [status, reasons, text, seenMs];
  };
  const now = Date.now();
  counts.note(exchangeRecord({ decision: 'answered' }), now);
  expect(seen()).toEqual(['ok', [], 'not asked yet', 0]);
  const fault = 'ECONNREFUSED';
  counts.note(exchangeRecord({ decision: 'failed', rejection: 'upstream-unreachable', fault }), now - 2);
  counts.note(exchangeRecord({ decision: 'failed', rejection: 'upstream-timeout' }), now);
  const failed = 'the last request failed: upstream-timeout';
  expect(seen()).toEqual(['down', [`upstream: ${failed}`], failed, now]);
  expect(counts.shop).toMatchObject({ failures: 2, failingSinceMs: now - 2 });
  counts.note(exchangeRecord({ decision: 'refused', rejection: 'access-token-missing' }), now + 1);
  expect(upstream.health().status).toBe('down');
  counts.note(exchangeRecord({ decision: 'forwarded' }), now + 2);
  const recently = 'it answers, but failed within the last minute: upstream-timeout';
  expect(seen()).toEqual(['degraded', [], recently, now + 2]);
  vi.setSystemTime(now + 59_999);
  expect(upstream.health().status).toBe('degraded');
  vi.setSystemTime(now + 60_000);
  expect(upstream.health()).toMatchObject({ status: 'ok', text: 'it answers' });
  counts.note(exchangeRecord({ decision: 'failed', rejection: 'upstream-unreachable', fault }), now + 3);
  expect(seen()[2]).toBe('the last request failed: upstream-unreachable (ECONNREFUSED)');
});

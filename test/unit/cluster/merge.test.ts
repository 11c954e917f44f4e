import { describe, expect, it } from 'vitest';
import { type ComponentHealth, readinessOf } from '../../../src/app/process-status.ts';
import { mergeHealth } from '../../../src/cluster/aggregate.ts';
import type { HealthDetail } from '../../../src/lib/component.ts';

const health = (status: ComponentHealth['status'], more: Partial<ComponentHealth> = {}): ComponentHealth => ({
  name: 'keys',
  title: 'Keys',
  status,
  reasons: [],
  ...more,
});

describe('readiness of several workers', () => {
  const ready = [health('ok')];
  const unready = [health('down', { reasons: ['no keys'], isUnready: true })];
  it.each([
    ['all ready', 2, [ready, ready], { ready: true, reasons: [] }],
    ['one ready', 2, [ready, unready], { ready: true, reasons: ['no keys (1 of 2 workers)'] }],
    ['none ready', 2, [unready, unready], { ready: false, reasons: ['no keys'] }],
    ['two of three do not answer', 3, [ready], { ready: true, reasons: ['2 of 3 workers not serving'] }],
    ['none answers', 1, [], { ready: false, reasons: ['1 of 1 workers not serving'] }],
  ])('%s', (_, count, answers, merged) => {
    expect(readinessOf(mergeHealth(count, answers))).toEqual(merged);
  });
});

it("a component has its worst worker's state; details are combined as declared", () => {
  const details = (hits: number, rows: number, at: number, since: number | null): HealthDetail[] => [
    { label: 'hits', value: hits, combine: 'sum' },
    { label: 'file rows', value: rows, combine: 'max' },
    { label: 'last', value: at, unit: 'time', combine: 'max' },
    { label: 'since', value: since, unit: 'time' },
    { label: 'kind', value: 'memory' },
  ];
  const well = health('ok', { text: 'well', details: details(2, 7, 20, null) });
  const not = health('degraded', { text: 'not', reasons: ['why'], details: details(3, 7, 10, 5) });
  expect(mergeHealth(2, [[well], [not]])).toEqual([
    { ...not, reasons: ['why (1 of 2 workers)'], isUnready: false, details: details(5, 7, 20, 5) },
  ]);
  expect(mergeHealth(0, [])).toEqual([]);
});

it('with seenMs, the worker that saw the component last decides', () => {
  const gone = health('down', { reasons: ['the last request failed'], seenMs: 1_000 });
  const back = health('ok', { seenMs: 2_000 });
  const idle = health('ok', { seenMs: 0 });
  const merged = (...workers: ComponentHealth[]) =>
    mergeHealth(
      workers.length,
      workers.map((one) => [one]),
    ).map(({ status, reasons }) => ({ status, reasons }));
  expect(merged(gone, back, idle)).toEqual([{ status: 'ok', reasons: [] }]);
  expect(merged(back, { ...gone, seenMs: 3_000 }, idle)).toEqual([
    { status: 'down', reasons: ['the last request failed'] },
  ]);
});

import { describe, expect, it } from 'vitest';
import type { PartState } from '../../src/admin/incidents.ts';
import { mergeParts, mergeReadiness } from '../../src/cluster/aggregate.ts';
import { createBackOff } from '../../src/cluster/supervisor.ts';

describe('readiness of several workers', () => {
  const ready = { ready: true, reasons: [] };
  it.each([
    ['all', 2, [ready, ready], ready],
    [
      'one of them',
      2,
      [ready, { ready: false, reasons: ['no keys'] }],
      { ready: true, reasons: ['no keys (1 of 2 workers)'] },
    ],
    [
      'none of them',
      2,
      [
        { ready: false, reasons: ['no keys'] },
        { ready: false, reasons: ['no keys'] },
      ],
      { ready: false, reasons: ['no keys'] },
    ],
    ['who answers', 3, [ready], { ready: true, reasons: ['2 of 3 workers not serving'] }],
    ['nobody', 1, [], { ready: false, reasons: ['1 of 1 workers not serving'] }],
  ])('%s', (_, count, answers, merged) => {
    expect(mergeReadiness(count, answers)).toEqual(merged);
  });
});

it('a part is as its worst worker has it, with the numbers of all', () => {
  const part = (status: PartState['status'], hits: number, rows: number, at: number): PartState => ({
    id: 'url-resolver',
    title: 'URL resolver',
    status,
    text: status,
    facts: [
      { label: 'hits', value: hits },
      { label: 'file rows', value: rows },
      { label: 'last', value: at, unit: 'time' },
      { label: 'kind', value: 'memory' },
    ],
  });
  expect(mergeParts([[part('ok', 2, 7, 10)], [part('limping', 3, 7, 20)]])).toEqual([
    part('limping', 5, 7, 20),
  ]);
  expect(mergeParts([])).toEqual([]);
});

it('who does not last is replaced later each time, and who has lasted at once', () => {
  const backOff = createBackOff();
  const delays = Array.from({ length: 12 }, () => backOff.delayMs(0, 10));
  expect(delays.slice(0, 4)).toEqual([100, 200, 400, 800]);
  expect(delays.at(-1)).toBe(30_000);
  expect(backOff.delayMs(0, 60_000)).toBe(100);
});

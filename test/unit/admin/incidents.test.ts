import { describe, expect, it } from 'vitest';
import { type Condition, findTrafficIncidents, Incidents, type Tile } from '../../../src/admin/incidents.ts';
import { type Outcome, outcomes } from '../../../src/admin/outcome.ts';

const part = (more: Partial<Tile> = {}): Tile => ({
  id: 'store',
  title: 'Store',
  status: 'ok',
  text: 'Redis answers',
  facts: [],
  ...more,
});
const condition = (more: Partial<Condition> = {}): Condition => ({
  ready: true,
  reasons: [],
  others: [],
  parts: [part()],
  problems: [],
  ...more,
});
const down = part({ status: 'down', text: 'Redis is away: refused' });

describe('an incident', () => {
  it('has the time when it was first seen, and is kept when it is over', () => {
    const incidents = new Incidents();
    incidents.update(condition(), 1_000);
    expect(incidents.current()).toEqual([]);
    incidents.update(condition({ parts: [down] }), 2_000);
    incidents.update(condition({ parts: [{ ...down, text: 'Redis is away: time-out' }] }), 3_000);
    expect(incidents.current()).toMatchObject([
      { id: 'store', status: 'down', text: 'Redis is away: time-out', sinceMs: 2_000, untilMs: null },
    ]);
    incidents.update(condition(), 4_000);
    expect(incidents.current()).toEqual([]);
    expect(incidents.past()).toMatchObject([{ id: 'store', sinceMs: 2_000, untilMs: 4_000 }]);
  });

  it('also comes from an edit that is not in force, and from a reason that belongs to no part', () => {
    const incidents = new Incidents();
    const severity = 'error' as const;
    const problem = { file: 'list.yaml', line: 1, column: 1, severity, text: 'no such key' };
    incidents.update(condition({ parts: [down], problems: [problem], others: ['log: lost'] }), 1_000);
    expect(incidents.current().map(({ id, text }) => [id, text])).toEqual([
      ['store', 'Redis is away: refused'],
      ['list', 'the last edit is not in force; the last good version is'],
      ['process', 'log: lost'],
    ]);
  });

  it('list is ordered by gravity; at most 50 past ones are kept', () => {
    const incidents = new Incidents();
    const degraded = part({ id: 'keys', title: 'Keys', status: 'degraded', text: 'old' });
    incidents.update(condition({ parts: [degraded, down] }), 1_000);
    expect(incidents.current().map(({ id }) => id)).toEqual(['store', 'keys']);
    for (let i = 0; i < 200; i++) {
      incidents.update(condition({ parts: [down] }), 2_000 + 2 * i);
      incidents.update(condition(), 2_001 + 2 * i);
    }
    expect(incidents.past().length).toBe(50);
  });

  it('that is over keeps its gravest status and text', () => {
    const incidents = new Incidents();
    incidents.update(condition({ parts: [down] }), 1_000);
    incidents.update(condition({ parts: [{ ...down, status: 'degraded', text: 'slow' }] }), 2_000);
    expect(incidents.current()).toMatchObject([{ status: 'degraded', text: 'slow', sinceMs: 1_000 }]);
    incidents.update(condition(), 3_000);
    expect(incidents.past()).toMatchObject([
      { status: 'down', text: 'Redis is away: refused', sinceMs: 1_000, untilMs: 3_000 },
    ]);
  });
});

describe('the traffic of the last minute', () => {
  const stepMs = 5_000;
  const endMs = 1_000_000;
  type Given = Partial<Record<Outcome, Readonly<Record<number, number>>>>;
  /** Requests by outcome and step; 0 is the current step, 1 the one before. */
  const find = (given: Given, isKnown = false) => {
    const column = (outcome: Outcome) => Array.from({ length: 60 }, (_, i) => given[outcome]?.[59 - i] ?? 0);
    const columns = Object.fromEntries(outcomes.map((one) => [one, column(one)])) as Record<
      Outcome,
      number[]
    >;
    return findTrafficIncidents({ stepMs, endMs, outcomes: columns }, () => isKnown);
  };

  it.each<[string, Given, string[]]>([
    ['no request', {}, []],
    ['most are refused', { refused: { 1: 40 }, passed: { 1: 10 } }, ['many-refusals']],
    ['few are refused', { refused: { 1: 10 }, passed: { 1: 40 } }, []],
    ['too few requests', { refused: { 1: 29 } }, []],
    ['half of thirty', { refused: { 1: 15 }, passed: { 1: 15 } }, ['many-refusals']],
    ['49 of 100', { refused: { 1: 49 }, passed: { 1: 51 } }, []],
    ['one of twenty fails', { failed: { 1: 2 }, passed: { 1: 38 } }, ['many-failures']],
    ['one of 21 fails', { failed: { 1: 2 }, passed: { 1: 39 } }, []],
    ['both', { failed: { 1: 30 }, refused: { 1: 30 } }, ['many-refusals', 'many-failures']],
    ['observed refusals', { observed: { 1: 40 } }, []],
    ['longer ago', { refused: { 12: 40 } }, []],
    ['long ago, and passed since', { refused: { 12: 400 }, passed: { 1: 40 } }, []],
  ])('%s', (_, given, ids) => {
    expect(find(given).map(({ id }) => id)).toEqual(ids);
  });

  it('is an incident from its first step until the share falls below a quarter', () => {
    expect(find({ refused: { 1: 40, 3: 5 }, passed: { 5: 9 } })).toMatchObject([
      {
        sinceMs: endMs - 4 * stepMs,
        untilMs: null,
        text: '83 % of the last minute: 45 of 54 requests were refused',
      },
    ]);
    const quarter = { refused: { 1: 10 }, passed: { 1: 30 } };
    expect(find(quarter)).toEqual([]);
    expect(find(quarter, true)).toMatchObject([{ id: 'many-refusals' }]);
    expect(find({ refused: { 1: 9 }, passed: { 1: 31 } }, true)).toEqual([]);
    expect(find({}, true)).toEqual([]);
  });
});

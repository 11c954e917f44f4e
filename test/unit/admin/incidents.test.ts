import { describe, expect, it } from 'vitest';
import { type Condition, Incidents, type Tile } from '../../../src/admin/incidents.ts';

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
  parts: [part()],
  problems: [],
  ...more,
});
const down = part({ status: 'down', text: 'Redis is away: refused' });

describe('what is not well', () => {
  it('is known since it was first seen, and kept when it is over', () => {
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

  it('begins when the part itself says so', () => {
    const incidents = new Incidents();
    const facts = [{ label: 'failing since', value: 1_500, unit: 'time' as const }];
    incidents.update(condition({ parts: [{ ...down, facts }] }), 9_000);
    expect(incidents.current()[0]?.sinceMs).toBe(1_500);
  });

  it('is said once: a reason that a part or a problem says is no incident of its own', () => {
    const incidents = new Incidents();
    const problem = {
      file: 'list.yaml',
      line: 1,
      column: 1,
      severity: 'error' as const,
      text: 'no such key',
    };
    incidents.update(
      condition({
        parts: [down],
        problems: [problem],
        reasons: [
          'store: Redis is away: refused',
          'protected list: list.yaml:1:1: error: no such key',
          'log: lost',
        ],
      }),
      1_000,
    );
    expect(incidents.current().map(({ id, text }) => [id, text])).toEqual([
      ['store', 'Redis is away: refused'],
      ['list', 'the last edit is not in force; the last good version is'],
      ['process', 'log: lost'],
    ]);
  });

  it('has the gravest first, and a bounded past', () => {
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

  it('of a process that is not ready is grave', () => {
    const incidents = new Incidents();
    incidents.update(condition({ ready: false, reasons: ['draining'] }), 1_000);
    expect(incidents.current()).toMatchObject([{ id: 'process', status: 'down', text: 'draining' }]);
  });

  it('that is over is told as it was when it was gravest', () => {
    const incidents = new Incidents();
    incidents.update(condition({ parts: [down] }), 1_000);
    incidents.update(condition({ parts: [{ ...down, status: 'degraded', text: 'slow' }] }), 2_000);
    expect(incidents.current()).toMatchObject([{ status: 'degraded', text: 'slow', sinceMs: 1_000 }]);
    incidents.update(condition(), 3_000);
    expect(incidents.past()).toMatchObject([
      { status: 'down', text: 'Redis is away: refused', sinceMs: 1_000, untilMs: 3_000 },
    ]);
  });

  it('of the traffic is over when it says so, and did not begin before the process', () => {
    const incidents = new Incidents(1_500);
    const attack = {
      id: 'many-refusals',
      title: 'Most requests are refused',
      status: 'degraded' as const,
      text: '91 %',
      sinceMs: 1_000,
      untilMs: null,
    };
    incidents.update(condition(), 2_000, [attack]);
    expect(incidents.current()).toMatchObject([{ id: 'many-refusals', sinceMs: 1_500 }]);
    expect(incidents.has('many-refusals')).toBe(true);
    incidents.update(condition(), 9_000, [{ ...attack, untilMs: 7_000 }]);
    incidents.update(condition(), 9_500, [{ ...attack, untilMs: 7_000 }]);
    expect(incidents.current()).toEqual([]);
    expect(incidents.past()).toMatchObject([{ id: 'many-refusals', sinceMs: 1_500, untilMs: 7_000 }]);
  });
});

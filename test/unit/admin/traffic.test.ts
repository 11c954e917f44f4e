import { describe, expect, it } from 'vitest';
import { findTrafficIncidents } from '../../../src/admin/traffic.ts';
import type { Outcome } from '../../../src/telemetry/outcome.ts';

const steps = 60;
const endMs = 1_000_000;
const stepMs = 5_000;

/** Requests by how many steps ago they were: 0 is the step that goes on. */
function reading(given: Partial<Record<Outcome, Readonly<Record<number, number>>>>) {
  const column = (outcome: Outcome) =>
    Array.from({ length: steps }, (_, i) => given[outcome]?.[steps - 1 - i] ?? 0);
  return {
    stepMs,
    endMs,
    outcomes: {
      passed: column('passed'),
      refused: column('refused'),
      observed: column('observed'),
      failed: column('failed'),
    },
  };
}
const nobody = () => false;
const everybody = () => true;
const idsOf = (given: Parameters<typeof reading>[0]) =>
  findTrafficIncidents(reading(given), nobody).map(({ id }) => id);

describe('what requests say by themselves', () => {
  it('is found when most requests are refused or some fail, and not with few requests', () => {
    expect(idsOf({})).toEqual([]);
    expect(idsOf({ refused: { 1: 40 }, passed: { 1: 10 } })).toEqual(['many-refusals']);
    expect(idsOf({ refused: { 1: 10 }, passed: { 1: 40 } })).toEqual([]);
    expect(idsOf({ refused: { 1: 29 } })).toEqual([]);
    expect(idsOf({ failed: { 1: 3 }, passed: { 1: 40 } })).toEqual(['many-failures']);
    expect(idsOf({ failed: { 1: 30 }, refused: { 1: 30 } })).toEqual(['many-refusals', 'many-failures']);
    // Observe mode refuses nobody.
    expect(idsOf({ observed: { 1: 40 } })).toEqual([]);
  });

  it('at the bounds: half of thirty requests are refused, or one of twenty fails', () => {
    expect(idsOf({ refused: { 1: 15 }, passed: { 1: 15 } })).toEqual(['many-refusals']);
    expect(idsOf({ refused: { 1: 15 }, passed: { 1: 14 } })).toEqual([]);
    expect(idsOf({ refused: { 1: 49 }, passed: { 1: 51 } })).toEqual([]);
    expect(idsOf({ failed: { 1: 2 }, passed: { 1: 38 } })).toEqual(['many-failures']);
    expect(idsOf({ failed: { 1: 2 }, passed: { 1: 39 } })).toEqual([]);
  });

  it('goes back as far as a minute without such a step, and to the oldest one', () => {
    const since = (refused: Readonly<Record<number, number>>) =>
      findTrafficIncidents(reading({ refused }), nobody)[0]?.sinceMs;
    expect(since({ 1: 40, 13: 1 })).toBe(endMs - 14 * stepMs);
    expect(since({ 1: 40, 14: 1 })).toBe(endMs - 2 * stepMs);
    expect(since({ 59: 40 })).toBe(endMs - 60 * stepMs);
  });

  it('begins with the first step that is so, after the last minute that was not', () => {
    const [since] = findTrafficIncidents(reading({ refused: { 1: 40, 3: 5 }, passed: { 5: 9 } }), nobody);
    expect(since).toMatchObject({
      sinceMs: endMs - 4 * stepMs,
      untilMs: null,
      text: '83 % of the last 5 minutes: 45 of 54 requests were refused',
    });
    const [later] = findTrafficIncidents(reading({ refused: { 1: 40, 50: 100 } }), nobody);
    expect(later?.sinceMs).toBe(endMs - 2 * stepMs);
  });

  it('ends a minute after the last such step, and until then is one incident', () => {
    const at = (ago: number) => findTrafficIncidents(reading({ refused: { [ago]: 40 } }), nobody);
    expect(at(12)).toMatchObject([{ untilMs: null }]);
    expect(at(13)).toMatchObject([{ sinceMs: endMs - 14 * stepMs, untilMs: endMs - 13 * stepMs }]);
    // What is known goes on although the share of the whole time is below the bound.
    const many = reading({ refused: { 1: 40 }, passed: { 30: 100 } });
    expect(findTrafficIncidents(many, nobody)).toEqual([]);
    expect(findTrafficIncidents(many, everybody)).toMatchObject([{ id: 'many-refusals', untilMs: null }]);
    expect(findTrafficIncidents(reading({}), everybody)).toEqual([]);
  });
});

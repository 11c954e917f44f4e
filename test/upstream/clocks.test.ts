import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Deadlines } from '../../src/upstream/deadlines.ts';
import { idleTimeoutSaid } from '../../src/upstream/exchange.ts';

describe('the deadlines of an exchange', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function open(answerWithinMs?: number) {
    const events: string[] = [];
    const deadlines = new Deadlines(
      {
        onTimeout: () => events.push('timeout'),
        onLate: () => events.push('late'),
        onCollectedTooLong: () => events.push('collected'),
        onBroken: () => events.push('broken'),
      },
      answerWithinMs,
      1000,
    );
    /** What has happened after so many milliseconds more. */
    const happenedIn = (ms: number) => {
      vi.advanceTimersByTime(ms);
      return events.splice(0);
    };
    return { deadlines, happenedIn };
  }

  test('an answer is waited for from the dispatch, and anew at each sign of life', () => {
    const { deadlines, happenedIn } = open();
    deadlines.begin();
    expect(happenedIn(5000)).toEqual([]);
    deadlines.dispatched();
    expect(happenedIn(999)).toEqual([]);
    deadlines.progress();
    expect(happenedIn(999)).toEqual([]);
    deadlines.sent();
    expect([happenedIn(999), happenedIn(1)]).toEqual([[], ['timeout']]);
  });

  test('with a fixed end it runs from the queue, and no sign of life moves it', () => {
    const { deadlines, happenedIn } = open(3000);
    deadlines.begin();
    expect(happenedIn(1000)).toEqual([]);
    deadlines.dispatched();
    deadlines.progress();
    deadlines.sent();
    expect([happenedIn(1999), happenedIn(1), happenedIn(9000)]).toEqual([[], ['timeout'], []]);
  });

  test('a request that is not sent in time is late; one that begins again has all of its time', () => {
    const { deadlines, happenedIn } = open();
    deadlines.sending(500);
    expect(happenedIn(499)).toEqual([]);
    deadlines.sending(500);
    expect([happenedIn(499), happenedIn(1)]).toEqual([[], ['late']]);
    deadlines.sending(500);
    deadlines.sent();
    expect(happenedIn(9000)).toEqual([]);
  });

  test('a body is held back for a second, unless there is a fixed end', () => {
    const { deadlines, happenedIn } = open();
    deadlines.collecting();
    expect([happenedIn(999), happenedIn(1)]).toEqual([[], ['collected']]);
    const fixed = open(60_000);
    fixed.deadlines.collecting();
    expect(fixed.happenedIn(50_000)).toEqual([]);
  });

  test('nothing happens when it is over', () => {
    const { deadlines, happenedIn } = open();
    deadlines.dispatched();
    deadlines.sending(500);
    deadlines.collecting();
    deadlines.stop();
    expect([happenedIn(9000), vi.getTimerCount()]).toEqual([[], 0]);
  });
});

test.each([
  [undefined, undefined],
  ['timeout=5', 4_000],
  ['timeout="65"', 64_000],
  ['max=100, Timeout=5', 4_000],
  ['max=100,timeout=5', 4_000],
  ['timeout=1', 0],
  ['timeout=0', -1_000],
  ['timeout=602', 600_000],
  ['timeout=600', 599_000],
  ['timeout=999999', 600_000],
  ['max=100', undefined],
  ['timeout=x', undefined],
  ['xtimeout=5', undefined],
  ['\xa0timeout=5', undefined],
  ['', undefined],
])('Keep-Alive: %j says %j ms', (value, ms) => {
  expect(idleTimeoutSaid(value === undefined ? [] : ['keep-alive', value])).toBe(ms);
});

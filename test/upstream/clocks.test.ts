import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Deadlines } from '../../src/upstream/deadlines.ts';
import { IdleTimeout, idleTimeoutSaid } from '../../src/upstream/idle-timeout.ts';

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
  ['timeout=5', 4000],
  ['timeout="5"', 4000],
  ['max=100, Timeout=5', 4000],
  ['max=100,timeout=5', 4000],
  ['timeout=1', 0],
  ['timeout=601', 600_000],
  ['timeout=602', 600_000],
  ['timeout=600', 599_000],
  ['timeout=x', undefined],
  ['xtimeout=5', undefined],
  ['', undefined],
])('Keep-Alive: %j says %j ms', (value, ms) => {
  expect(idleTimeoutSaid(value === undefined ? [] : ['keep-alive', value])).toBe(ms);
});

describe('for how long an idle connection is used again', () => {
  test('the time that the upstream sends counts, then the configured one', () => {
    const idle = new IdleTimeout(4000);
    expect([idle.usableMs(undefined), idle.usableMs(9000), idle.usableMs(0)]).toEqual([4000, 9000, 0]);
    // Recent is all of what is said, else a quarter of a second.
    expect([idle.recentMs(undefined), idle.recentMs(9000), new IdleTimeout(400).recentMs(undefined)]).toEqual(
      [250, 9000, 100],
    );
  });

  test('an upstream that ends them sooner is believed, and one that does not any more, too', () => {
    const idle = new IdleTimeout(4000);
    idle.endedAfter(2000);
    expect([idle.usableMs(undefined), idle.usableMs(9000), idle.recentMs(9000)]).toEqual([1500, 1500, 250]);
    // Only ever less.
    idle.endedAfter(3000);
    expect(idle.usableMs(undefined)).toBe(1500);
    idle.endedAfter(1);
    expect(idle.usableMs(undefined)).toBe(100);
    idle.outlived(1000);
    expect(idle.usableMs(undefined)).toBe(1250);
    idle.outlived(100);
    expect(idle.usableMs(undefined)).toBe(1250);
    idle.outlived(480_000);
    expect([idle.usableMs(700_000), idle.recentMs(700_000)]).toEqual([600_000, 250]);
    idle.outlived(480_001);
    expect([idle.usableMs(700_000), idle.recentMs(700_000)]).toEqual([700_000, 700_000]);
  });
});

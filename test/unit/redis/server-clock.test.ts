import { describe, expect, test } from 'vitest';
import { ServerClock } from '../../../src/redis/server-clock.ts';

/** The server's clock is so far ahead of ours. Microseconds. */
const ahead = 5_000_000_000;
const storeAt = (ms: number) => ahead + ms * 1000;

function heardClock(...words: readonly (readonly [askedMs: number, saidMs: number, heardMs: number])[]) {
  const clock = new ServerClock();
  for (const [askedMs, saidMs, heardMs] of words) clock.hear(storeAt(saidMs), askedMs, heardMs);
  return clock;
}

describe('what is known of a server’s clock', () => {
  test('nothing before it was heard, after it was forgotten, and half a minute after the last word', () => {
    const clock = new ServerClock();
    expect(clock.isKnown(0)).toBe(false);
    clock.hear(storeAt(10), 9, 11);
    expect([clock.isKnown(11), clock.isKnown(30_011), clock.isKnown(30_012)]).toEqual([true, true, false]);
    expect([clock.isFresh(5_011), clock.isFresh(5_012)]).toEqual([true, false]);
    clock.forget();
    expect(clock.isKnown(11)).toBe(false);
  });

  test.each([
    ['one word', [[0, 1, 2]]],
    [
      'a slow reply after a quick one',
      [
        [0, 1, 2],
        [10, 11, 400],
      ],
    ],
    [
      'a quick reply after a slow one',
      [
        [0, 1, 300],
        [310, 311, 312],
      ],
    ],
    ['many', Array.from({ length: 50 }, (_, i) => [i * 10, i * 10 + (i % 3), i * 10 + (i % 7) + 3])],
  ] as [string, [number, number, number][]][])('never more than it shows: %s', (_, words) => {
    const clock = heardClock(...words);
    const lastMs = Math.max(...words.map(([, , heardMs]) => heardMs));
    for (const later of [0, 1, 500, 20_000]) {
      expect(clock.atLeast(lastMs + later)).toBeLessThanOrEqual(storeAt(lastMs + later));
    }
  });

  test('the tightest time counts, however slow the next replies are', () => {
    const clock = heardClock([0, 1, 2], [10, 11, 400]);
    expect(clock.atLeast(400)).toBeGreaterThan(storeAt(398));
  });

  test('drift is allowed for: what was tight is looser after a while, and a new word counts again', () => {
    const clock = heardClock([0, 1, 1]);
    expect(clock.atLeast(10_001)).toBe(storeAt(10_001) - 10_000);
    clock.hear(storeAt(10_005), 10_000, 10_006);
    expect(clock.atLeast(10_006)).toBe(storeAt(10_005));
  });

  test('a clock that was set back is believed', () => {
    const clock = heardClock([0, 1, 2], [1_000, -3_599_000, 1_001]);
    expect(clock.atLeast(1_001)).toBe(storeAt(-3_599_000));
  });
});

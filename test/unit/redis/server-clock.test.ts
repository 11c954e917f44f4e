import { describe, expect, test } from 'vitest';
import { ServerClock } from '../../../src/redis/server-clock.ts';

/** How far the server's clock is ahead of ours, in microseconds. */
const ahead = 5_000_000_000;
const storeAt = (ms: number) => ahead + ms * 1000;

function heardClock(...words: readonly (readonly [askedMs: number, saidMs: number, heardMs: number])[]) {
  const clock = new ServerClock();
  for (const [askedMs, saidMs, heardMs] of words) clock.hear(storeAt(saidMs), askedMs, heardMs);
  return clock;
}

describe('ServerClock', () => {
  test('is unknown before the first answer, after forget, and 30 s after the last answer', () => {
    const clock = new ServerClock();
    expect(clock.isKnown(0)).toBe(false);
    clock.hear(storeAt(10), 9, 11);
    expect([clock.isKnown(11), clock.isKnown(30_011), clock.isKnown(30_012)]).toEqual([true, true, false]);
    expect([clock.isFresh(5_011), clock.isFresh(5_012)]).toEqual([true, false]);
    clock.forget();
    expect(clock.isKnown(11)).toBe(false);
  });

  test.each([
    ['one answer', [[0, 1, 2]]],
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
    ['many answers', Array.from({ length: 50 }, (_, i) => [i * 10, i * 10 + (i % 3), i * 10 + (i % 7) + 3])],
  ] as [string, [number, number, number][]][])(
    'atLeast is never later than the real clock: %s',
    (_, words) => {
      const clock = heardClock(...words);
      const lastMs = Math.max(...words.map(([, , heardMs]) => heardMs));
      for (const later of [0, 1, 500, 20_000]) {
        expect(clock.atLeast(lastMs + later)).toBeLessThanOrEqual(storeAt(lastMs + later));
      }
    },
  );

  test('a slow answer after a quick one does not loosen atLeast', () => {
    const clock = heardClock([0, 1, 2], [10, 11, 400]);
    expect(clock.atLeast(400)).toBeGreaterThan(storeAt(398));
  });

  test('atLeast loses 10 ms in 10 s for drift, until the next answer', () => {
    const clock = heardClock([0, 1, 1]);
    expect(clock.atLeast(10_001)).toBe(storeAt(10_001) - 10_000);
    clock.hear(storeAt(10_005), 10_000, 10_006);
    expect(clock.atLeast(10_006)).toBe(storeAt(10_005));
  });

  test('atLeast follows a clock that was set back', () => {
    const clock = heardClock([0, 1, 2], [1_000, -3_599_000, 1_001]);
    expect(clock.atLeast(1_001)).toBe(storeAt(-3_599_000));
  });
});

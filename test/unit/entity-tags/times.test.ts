import { describe, expect, test } from 'vitest';
import { StoreClock } from '../../../src/entity-tags/redis-store.ts';
import { entityTagTimes } from '../../../src/entity-tags/times.ts';

const settings = { lease: 15_000, sendBy: 2000, storeTimeout: 500, responseTimeout: 60_000 };

describe('entityTagTimes', () => {
  test.each([
    [{}, { firstByteByMs: 1000, sendWithinMs: 1000, answerWithinMs: 13_000 }],
    [{ responseTimeout: 5000 }, { answerWithinMs: 5000 }],
    [{ lease: 15_000 }, { longestReadMs: 120_000, recordExpiryMs: 86_400_000, anonymousExpiryMs: 3_600_000 }],
    [
      { responseTimeout: 36_000_000 },
      { longestReadMs: 72_000_000, recordExpiryMs: 144_000_000, anonymousExpiryMs: 144_000_000 },
    ],
    [
      { lease: 36_000_000 },
      { longestReadMs: 72_000_000, recordExpiryMs: 144_000_000, anonymousExpiryMs: 144_000_000 },
    ],
    [{ lease: 40_000 }, { answerWithinMs: 38_000 }],
  ])('%j', (more, expected) => {
    expect(entityTagTimes({ ...settings, ...more })).toMatchObject(expected);
  });

  test.each([{ lease: 2500 }, { lease: 3000 }, { sendBy: 14_500 }, { storeTimeout: 12_500 }])(
    'refuses %j',
    (more) => {
      expect(entityTagTimes({ ...settings, ...more })).toBeUndefined();
    },
  );

  test('sending, answering and storing the outcome fit into the lease', () => {
    for (const lease of [3100, 5000, 15_000, 60_000]) {
      const times = entityTagTimes({ ...settings, lease });
      if (times === undefined) throw new Error('refused');
      expect(times.firstByteByMs + times.sendWithinMs + 500).toBeLessThan(lease);
      expect(times.firstByteByMs + times.answerWithinMs + settings.storeTimeout).toBeLessThan(lease);
      expect(times.recordExpiryMs).toBeGreaterThan(times.longestReadMs);
    }
  });
});

describe('StoreClock', () => {
  test('gives no stamp later than the asked time, before and after the answer', () => {
    let now = 1000;
    const clock = new StoreClock(() => now);
    expect(clock.readStampAt(0, 1000)).toBeNull();
    clock.hear(0, 'e', 5_000_000, 1000);
    expect(clock.readStampAt(0, 1000)).toEqual({ epoch: 'e', startedAt: 5_000_000 });
    expect(clock.readStampAt(0, 1100)?.startedAt).toBe(5_100_000 - 100);
    expect(clock.readStampAt(0, 900)?.startedAt).toBe(4_900_000 - 100);
    expect(clock.readStampAt(1, 1000)).toBeNull();
    // Heard late, because this process was stopped. The stamp may be too early, never too late.
    now = 4000;
    clock.hear(0, 'e', 5_200_000, 1000);
    expect(clock.readStampAt(0, 1100)?.startedAt).toBe(5_100_000 - 100);
    clock.hear(0, 'another', 5_200_000, 1000);
    expect(clock.readStampAt(0, 1100)?.startedAt).toBe(5_200_000 - 2_900_000 - 2900);
  });

  test('hasHeard is true for 100 ms after an answer', () => {
    let now = 1000;
    const clock = new StoreClock(() => now);
    expect(clock.hasHeard(0)).toBe(false);
    clock.hear(0, 'e', 5_000_000, 1000);
    now = 1100;
    expect([clock.hasHeard(0), clock.hasHeard(1)]).toEqual([true, false]);
    now = 1101;
    expect(clock.hasHeard(0)).toBe(false);
    clock.hear(0, 'e', 5_000_000, 1000);
    expect(clock.hasHeard(0)).toBe(true);
  });

  test('gives no stamp a minute after the last answer', () => {
    const clock = new StoreClock(() => 0);
    clock.hear(0, 'e', 1, 0);
    expect(clock.readStampAt(0, 60_000)).not.toBeNull();
    expect(clock.readStampAt(0, 60_001)).toBeNull();
  });
});

import { describe, expect, test } from 'vitest';
import { StoreClock } from '../../../src/entity-tags/redis-store.ts';
import { entityTagTimes } from '../../../src/entity-tags/times.ts';

const settings = { leaseMs: 15_000, sendByMs: 2000, storeTimeoutMs: 500, responseTimeoutMs: 60_000 };

describe('entityTagTimes', () => {
  test.each([
    [{}, { firstByteByMs: 1000, sendWithinMs: 1000, answerWithinMs: 13_000 }],
    [{ responseTimeoutMs: 5000 }, { answerWithinMs: 5000 }],
    [{}, { longestReadMs: 120_000, recordExpiryMs: 86_400_000, anonymousExpiryMs: 3_600_000 }],
    [
      { responseTimeoutMs: 36_000_000 },
      { longestReadMs: 72_000_000, recordExpiryMs: 144_000_000, anonymousExpiryMs: 144_000_000 },
    ],
    [
      { leaseMs: 36_000_000 },
      { longestReadMs: 72_000_000, recordExpiryMs: 144_000_000, anonymousExpiryMs: 144_000_000 },
    ],
    [{ leaseMs: 40_000 }, { answerWithinMs: 38_000 }],
  ])('%j', (more, expected) => {
    expect(entityTagTimes({ ...settings, ...more })).toMatchObject(expected);
  });

  test.each([{ leaseMs: 2500 }, { leaseMs: 3000 }, { sendByMs: 14_500 }, { storeTimeoutMs: 12_500 }])(
    'refuses %j',
    (more) => {
      expect(entityTagTimes({ ...settings, ...more })).toHaveProperty('problem');
    },
  );

  test('sending, answering and storing the outcome fit into the lease', () => {
    for (const leaseMs of [3100, 5000, 15_000, 60_000]) {
      const times = entityTagTimes({ ...settings, leaseMs });
      if ('problem' in times) throw new Error(times.problem);
      expect(times.firstByteByMs + times.sendWithinMs + 500).toBeLessThan(leaseMs);
      expect(times.firstByteByMs + times.answerWithinMs + settings.storeTimeoutMs).toBeLessThan(leaseMs);
      expect(times.recordExpiryMs).toBeGreaterThan(times.longestReadMs);
    }
  });
});

describe('StoreClock', () => {
  test('gives a stamp that is never later than the moment, before and after the answer', () => {
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

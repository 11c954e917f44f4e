import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { RedisUnavailable } from '../../src/redis/faults.ts';
import { RetryQueue } from '../../src/refresh-tokens/retry-queue.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('10,000 writes wait for a store that is away, each one more is lost, and all that wait are written', async () => {
  const seen = { delayed: 0, lost: 0, written: 0 };
  let isAway = true;
  const queue = new RetryQueue({
    onDelayed() {
      seen.delayed += 1;
    },
    onLost() {
      seen.lost += 1;
    },
  });
  const newWrite = () => () => {
    if (isAway) throw new RedisUnavailable('timeout');
    seen.written += 1;
  };
  for (let i = 0; i < 10_003; i += 1) expect(await queue.write(newWrite())).toBe(false);
  expect([queue.waiting, seen]).toEqual([10_000, { delayed: 10_000, lost: 3, written: 0 }]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(queue.waiting).toBe(10_000);
  isAway = false;
  await vi.advanceTimersByTimeAsync(250);
  expect([queue.waiting, seen.written, seen.lost]).toEqual([0, 10_000, 3]);
});

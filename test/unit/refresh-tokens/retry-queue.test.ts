import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hearFaults } from '../../../src/lib/faults.ts';
import { RedisUnavailable } from '../../../src/redis/faults.ts';
import { RetryQueue } from '../../../src/refresh-tokens/retry-queue.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('of 10,003 writes to an unavailable store 10,000 wait and are written later, three are lost', async () => {
  const seen = { 'write-delayed': 0, 'write-lost': 0, written: 0 };
  let isAway = true;
  const queue = new RetryQueue({
    emit(event) {
      seen[event] += 1;
    },
  });
  const newWrite = () => () => {
    if (isAway) throw new RedisUnavailable('timeout');
    seen.written += 1;
  };
  for (let i = 0; i < 10_003; i += 1) expect(await queue.write(newWrite())).toBe(false);
  expect([queue.waiting, seen]).toEqual([10_000, { 'write-delayed': 10_000, 'write-lost': 3, written: 0 }]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(queue.waiting).toBe(10_000);
  isAway = false;
  await vi.advanceTimersByTimeAsync(250);
  expect([queue.waiting, seen.written, seen['write-lost']]).toEqual([0, 10_000, 3]);
});

test('a queued write that throws a TypeError is lost and counted; the next one is written', async () => {
  const seen = { lost: 0, written: 0, isAway: true };
  const faults: unknown[] = [];
  hearFaults((fault) => faults.push(fault));
  const queue = new RetryQueue({
    emit(event) {
      if (event === 'write-lost') seen.lost += 1;
    },
  });
  await queue.write(() => {
    if (seen.isAway) throw new RedisUnavailable('timeout');
    throw new TypeError('a mistake');
  });
  await queue.write(() => {
    if (seen.isAway) throw new RedisUnavailable('timeout');
    seen.written += 1;
  });
  seen.isAway = false;
  await queue.flush();
  expect([seen, queue.waiting]).toEqual([{ lost: 1, written: 1, isAway: false }, 0]);
  expect(faults).toEqual([new TypeError('a mistake')]);
  await expect(queue.write(() => Promise.reject(new TypeError('a mistake')))).rejects.toThrow('a mistake');
  hearFaults(() => {});
});

test('close tries once more, returns the number of lost writes, and stops the timer', async () => {
  let tries = 0;
  const queue = new RetryQueue({ emit() {} });
  const write = () => {
    tries += 1;
    throw new RedisUnavailable('timeout');
  };
  await queue.write(write);
  expect([await queue.close(), tries]).toEqual([1, 2]);
  await queue.write(write);
  expect([tries, vi.getTimerCount()]).toEqual([3, 0]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(tries).toBe(3);
});

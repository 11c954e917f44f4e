import { afterEach, beforeEach, expect, it, vi } from 'vitest';

// A module of the page, without types of its own.
const place: string = '../../src/admin/console/poll.js';
const { Poll, longestWaitMs } = (await import(place)) as {
  Poll: new (ask: () => Promise<boolean>, isWatched: () => boolean) => { wake(): void; again(): void };
  longestWaitMs: number;
};

/** A poll whose answers come when they are told to; `times` of its questions, in milliseconds. */
function open() {
  const times: number[] = [];
  const waiting: ((isAnswered: boolean) => void)[] = [];
  let most = 0;
  const seen = { isWatched: true };
  const poll = new Poll(
    () => {
      times.push(Date.now());
      const answer = new Promise<boolean>((resolve) => waiting.push(resolve));
      most = Math.max(most, waiting.length);
      return answer;
    },
    () => seen.isWatched,
  );
  const answer = async (isAnswered: boolean) => {
    waiting.shift()?.(isAnswered);
    await vi.advanceTimersByTimeAsync(0);
  };
  return { poll, seen, times, answer, most: () => most };
}

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
});
afterEach(() => {
  vi.useRealTimers();
});

it('asks every two seconds after an answer, however long that took', async () => {
  const { poll, times, answer, most } = open();
  poll.wake();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(times).toEqual([0]);
  await answer(true);
  await vi.advanceTimersByTimeAsync(1_999);
  expect(times).toEqual([0]);
  await vi.advanceTimersByTimeAsync(1);
  expect(times).toEqual([0, 12_000]);
  expect(most()).toBe(1);
});

it('never asks twice at a time; what was wanted of another view is asked once, afterwards', async () => {
  const { poll, times, answer, most } = open();
  for (let i = 0; i < 10; i++) poll.wake();
  for (let i = 0; i < 10; i++) poll.again();
  expect(times).toHaveLength(1);
  await answer(true);
  expect(times).toEqual([0, 0]);
  await answer(true);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(times).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(times).toEqual([0, 0, 2_000]);
  expect(most()).toBe(1);
});

it('what was asked early is not asked again where it would have been due', async () => {
  const { poll, times, answer } = open();
  poll.wake();
  await answer(true);
  await vi.advanceTimersByTimeAsync(1_000);
  poll.wake();
  await answer(true);
  await vi.advanceTimersByTimeAsync(1_999);
  expect(times).toEqual([0, 1_000]);
  await vi.advanceTimersByTimeAsync(1);
  expect(times).toEqual([0, 1_000, 3_000]);
});

it('asks ever less often while no answer comes, at once when somebody does something, and as before when one came', async () => {
  const { poll, times, answer } = open();
  poll.wake();
  for (const waitMs of [4_000, 8_000, 16_000, longestWaitMs, longestWaitMs]) {
    const asked = times.length;
    await answer(false);
    await vi.advanceTimersByTimeAsync(waitMs - 1);
    expect(times).toHaveLength(asked);
    await vi.advanceTimersByTimeAsync(1);
    expect(times).toHaveLength(asked + 1);
  }
  await answer(false);
  const before = times.length;
  poll.again();
  expect(times).toHaveLength(before + 1);
  await answer(true);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(times).toHaveLength(before + 2);
});

it('asks nothing and keeps no timer while nobody looks, and asks once when somebody comes back', async () => {
  const { poll, seen, times, answer } = open();
  poll.wake();
  await answer(true);
  seen.isWatched = false;
  await vi.advanceTimersByTimeAsync(3_600_000);
  expect(times).toEqual([0]);
  expect(vi.getTimerCount()).toBe(0);
  seen.isWatched = true;
  poll.wake();
  poll.wake();
  expect(times).toHaveLength(2);
  // Asked when nobody looks any more: the answer is the last thing that happens.
  seen.isWatched = false;
  await answer(true);
  expect(vi.getTimerCount()).toBe(0);
});

import { describe, expect, it } from 'vitest';
import { finish, finishInSlices, type Steps } from '../../../src/lib/slices.ts';

describe('long work in steps', () => {
  function* count(to: number): Steps<number> {
    for (let i = 0; i < to; i += 1) {
      if (i === 1_000_000) throw new Error('too far');
      yield;
    }
    return to;
  }

  it('is done at once, or in slices', async () => {
    expect(finish(count(1_000))).toBe(1_000);
    expect(await finishInSlices(count(1_000))).toBe(1_000);
    await expect(finishInSlices(count(1_000_001))).rejects.toThrow('too far');
  });

  it('all work together has one slice in a tick', async () => {
    let [tick, isOver, together] = [0, false, 0];
    const seen = new Map<number, number>();
    const next = () => {
      tick += 1;
      if (!isOver) setImmediate(next);
    };
    setImmediate(next);
    function* work(id: number): Steps<void> {
      for (let i = 0; i < 1_000; i += 1) {
        if ((seen.get(tick) ?? id) !== id) together += 1;
        seen.set(tick, id);
        yield;
      }
    }
    await Promise.all(Array.from({ length: 30 }, (_, id) => finishInSlices(work(id))));
    isOver = true;
    expect([together, seen.size]).toEqual([0, expect.any(Number)]);
    expect(seen.size).toBeGreaterThanOrEqual(30);
  });

  it('lets other work run between slices', async () => {
    let ticks = 0;
    let isOver = false;
    const tick = () => {
      ticks += 1;
      if (!isOver) setImmediate(tick);
    };
    setImmediate(tick);
    // Ends when other work has run, however busy the machine is; the bound fails the test if no other work runs.
    function* untilOthersRan(): Steps<void> {
      for (let i = 0; ticks < 2 && i < 5_000_000; i += 1) yield;
    }
    await finishInSlices(untilOthersRan());
    isOver = true;
    expect(ticks).toBeGreaterThan(1);
  });
});

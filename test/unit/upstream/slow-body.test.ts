import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { watchBody } from '../../../src/upstream/request-body.ts';

const limits = { bodyLimitBytes: 1_000_000, bodyTimeoutMs: 20_000 };

/** Simulates a body with `octets` every `everyMs`: `[reason, ms]` of its refusal, or undefined within 10 minutes. */
function letGo(octets: number, everyMs: number, pausedUntilMs = 0): readonly [string, number] | undefined {
  const body = new PassThrough();
  let refused: readonly [string, number] | undefined;
  let ms = 0;
  watchBody(body as never, limits, ({ rejection, reason }) => {
    refused = [reason ?? rejection, ms];
  });
  if (pausedUntilMs === 0) body.resume();
  for (; ms < 600_000 && refused === undefined; ms += 100) {
    if (ms === pausedUntilMs) body.resume();
    if (octets > 0 && ms % everyMs === 0) body.emit('data', Buffer.alloc(octets));
    vi.advanceTimersByTime(100);
  }
  return refused;
}

describe('a slow body', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it.each([
    ['that stalls at once', 0, 1_000, 20_000],
    ['of 36 octets a second', 36, 1_000, 22_000],
    ['of a byte a second', 1, 1_000, 21_000],
    ['just below the rate', 450, 1_000, 201_000],
  ])('%s is refused', (_, octets, everyMs, withinMs) => {
    const [reason, ms] = letGo(octets, everyMs) ?? [];
    expect(reason).toBe('slow-body');
    expect(ms).toBeLessThanOrEqual(withinMs);
  });

  it.each([
    ['at the rate', 500, 1_000],
    ['that comes in bursts', 9_500, 19_000],
  ])('%s is not refused', (_, octets, everyMs) => {
    expect(letGo(octets, everyMs)).toBeUndefined();
  });

  it('is not refused while its reader pauses it', () => {
    expect(letGo(0, 1_000, 500_000)?.[1]).toBeGreaterThan(500_000);
  });

  it('is refused after a stall, however much came before', () => {
    const body = new PassThrough();
    const refusals: unknown[] = [];
    watchBody(body as never, limits, (rejection) => refusals.push(rejection));
    body.resume();
    body.emit('data', Buffer.alloc(900_000));
    vi.advanceTimersByTime(19_000);
    expect(refusals).toHaveLength(0);
    vi.advanceTimersByTime(2_000);
    expect(refusals).toHaveLength(1);
  });
});

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createExchangeBatch, type ExchangeRecord } from '../../../src/telemetry/exchange-record.ts';
import { exchangeRecord } from '../admin/exchange-records.ts';

/** A batch, and what its reader has taken. `take` delays the reader, or fails. */
function open(take?: () => Promise<void>) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const taken: string[][] = [];
  const note = createExchangeBatch((records: readonly ExchangeRecord[]) => {
    taken.push(records.map(({ requestId }) => requestId));
    return take?.();
  });
  return { taken, add: (requestId: string) => note(exchangeRecord({ requestId })) };
}

describe('the batch of ended exchanges', () => {
  it('is sent in order after 100 ms, or when it has 128 records', async () => {
    const { taken, add } = open();
    add('1');
    add('2');
    expect(taken).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(taken).toEqual([['1', '2']]);
    for (let i = 1; i <= 129; i++) add(`${i}`);
    expect(taken[1]).toHaveLength(128);
    await vi.advanceTimersByTimeAsync(200);
    expect(taken[2]).toEqual(['129']);
  });

  it('waits for a slow reader, and drops what is beyond 5,000 records', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { taken, add } = open(() => promise);
    add('first');
    await vi.advanceTimersByTimeAsync(200);
    for (let i = 0; i < 5_001; i++) add(`${i}`);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(taken).toEqual([['first']]);
    resolve();
    await vi.advanceTimersByTimeAsync(200);
    expect(taken[1]?.length).toBe(5_000);
    expect(taken[1]?.at(-1)).toBe('4999');
  });

  it('goes on after a reader that throws', async () => {
    const { taken, add } = open(() => {
      throw new Error('a fault of the reader');
    });
    for (const id of ['1', '2']) {
      add(id);
      await vi.advanceTimersByTimeAsync(200);
    }
    expect(taken).toEqual([['1'], ['2']]);
  });
});

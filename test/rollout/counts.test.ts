import { describe, expect, it } from 'vitest';
import {
  bounds,
  combineEntries,
  dayMs,
  hourMs,
  type Refusal,
  RolloutCounts,
} from '../../src/rollout/counts.ts';

const refusal: Refusal = {
  kind: 'observed',
  method: 'GET',
  route: '/carts/{id}',
  reason: 'access-token-missing',
};
const app = { client: 'subject DE--21', userAgent: 'app/1' };
/** The beginning of a day. */
const startMs = 20_000 * dayMs;
const hour = startMs / hourMs;

function countsOf(...times: readonly number[]): RolloutCounts {
  const counts = new RolloutCounts(30 * dayMs);
  for (const atMs of times) counts.note(refusal, app, atMs);
  return counts;
}

describe('counts of refusals', () => {
  it('forget hours after 48 and days after those that are kept, by the newest of all times', () => {
    const counts = new RolloutCounts(1.5 * dayMs);
    for (const hours of [0, 1, 24, 49, 48]) counts.note(refusal, undefined, startMs + hours * hourMs);
    const [entry] = counts.entries();
    expect(Object.keys(entry?.hours ?? {}).map((name) => Number(name) - hour)).toEqual([1, 24, 48, 49]);
    counts.note(refusal, undefined, startMs + 72 * hourMs);
    expect(counts.entries()[0]?.days).toEqual({ 20001: 1, 20002: 2, 20003: 1 });
    expect(counts.entries()[0]?.requests).toBe(6);
  });

  it('of no more than 500 rows and reasons: what has no place is left out, and since when is known', () => {
    const counts = new RolloutCounts(dayMs);
    for (let i = 0; i < bounds.entries; i++) counts.note({ ...refusal, route: `/${i}` }, undefined, startMs);
    expect(counts.leftOutSinceMs).toBeUndefined();
    for (const atMs of [startMs + 1, startMs + 2]) counts.note(refusal, app, atMs);
    expect([counts.leftOutSinceMs, counts.entries().length]).toEqual([startMs + 1, 500]);
    counts.note({ ...refusal, route: '/0' }, undefined, startMs);
    expect(counts.entries()[0]?.requests).toBe(2);
  });

  it('keep 100 clients each, and 5,000 together; further ones are counted without a name', () => {
    const counts = new RolloutCounts(dayMs);
    for (let row = 0; row < 51; row++) {
      for (let i = 0; i <= 100; i++) {
        counts.note({ ...refusal, route: `/${row}` }, { ...app, client: `${row} ${i}` }, startMs);
      }
    }
    const entries = counts.entries();
    expect(entries.map(({ clients }) => clients.length)).toEqual([...Array(50).fill(100), 0]);
    expect(entries.map(({ beyond }) => beyond)).toEqual([...Array(50).fill(1), 101]);
    counts.note({ ...refusal, route: '/0' }, { ...app, client: '0 7' }, startMs + 1);
    expect(counts.entries()[0]?.clients[0]).toMatchObject({ client: '0 7', requests: 2 });
  });
});

it('what several have counted is one: sums, the first and the last time, each client once', () => {
  const [a] = countsOf(startMs, startMs + hourMs).entries();
  const [b] = countsOf(startMs + hourMs, startMs + 2 * hourMs, startMs + dayMs).entries();
  const other = { client: 'other', userAgent: 'app/1', requests: 9, lastSeenMs: startMs };
  const many = { ...refusal, method: 'PUT' } as const;
  if (a === undefined || b === undefined) throw new Error('nothing was counted');
  const lists = [[{ ...a, beyond: 2 }], [{ ...b, beyond: 3, clients: [...b.clients, other] }]];
  const third = [{ ...a, ...many, requests: 100 }];
  const [first, second, ...none] = combineEntries([...lists, third]);
  expect(none).toEqual([]);
  expect(first).toEqual(third[0]);
  expect(second).toEqual({
    ...refusal,
    ...{ requests: 5, sinceMs: startMs, lastSeenMs: startMs + dayMs, beyond: 5 },
    hours: { [hour]: 1, [hour + 1]: 2, [hour + 2]: 1, [hour + 24]: 1 },
    days: { 20000: 4, 20001: 1 },
    clients: [other, { ...app, requests: 5, lastSeenMs: startMs + dayMs }],
  });
  expect(combineEntries([[b], [a]])[0]).toMatchObject({ sinceMs: startMs, lastSeenMs: startMs + dayMs });
});

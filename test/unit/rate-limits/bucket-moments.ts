import { type Rate, type Taken, takeToken } from '../../../src/rate-limits/buckets.ts';

/** Time of the first request. */
export const startUs = 1_800_000_000_000_000;

/** Times of requests, in microseconds since the first; the clock may go back. */
export type Moments = readonly number[];

/** The answers by the rules of docs/decisions/rate-limits.md. */
export function expected(rate: Rate, moments: Moments): Taken[] {
  let fullAt = 0;
  return moments.map((moment) => {
    const { fullAtUs, ...taken } = takeToken(fullAt, startUs + moment, rate);
    fullAt = fullAtUs ?? fullAt;
    return taken;
  });
}

export const second = 1_000_000;
const seven: Rate = { requests: 7, perMs: 60_000 };
export const three: Rate = { requests: 3, perMs: 3000 };
/** Together they notice every break of the script. */
export const scripts: readonly (readonly [Rate, Moments])[] = [
  [three, [0, 0, 0, 0, second - 1, second, second, 2 * second, 10 * second, 10 * second]],
  [three, [0, 0, 0, -5 * second, -5 * second, -4 * second, -4 * second, -3 * second]],
  [seven, [...Array<number>(8).fill(0), 8_571_428, 8_571_429, 60 * second, 60 * second]],
  [{ requests: 1, perMs: 1000 }, [0, 0, second - 1, second]],
  [three, [0, 333_333, 666_666, 700_000, 900_000, 20 * second + 1, 20 * second + 7]],
];

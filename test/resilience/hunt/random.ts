export type Random = ReturnType<typeof createRandom>;

/** Random choices that a seed makes repeatable. Mulberry32: small, and good enough for these choices. */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  /** In [0, 1). */
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(from: readonly T[]): T => {
    const one = from[Math.floor(next() * from.length)];
    if (one === undefined) throw new RangeError('nothing to pick from');
    return one;
  };
  return {
    next,
    /** In [0, limit). */
    upTo: (limit: number) => next() * limit,
    pick,
    shuffle: <T>(all: readonly T[]): T[] =>
      all
        .map((one) => [next(), one] as const)
        .sort(([a], [b]) => a - b)
        .map(([, one]) => one),
  };
}

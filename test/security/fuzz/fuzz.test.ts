import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { committedSeed, runTarget } from './fuzz-target.ts';
import { readRegressions } from './regressions.ts';
import { targetNames } from './target-names.ts';
import { targets } from './targets.ts';

const regressions = readRegressions();
const seed = committedSeed();

it('every regression is of something that is still fuzzed', () => {
  const names: string[] = targets.map(({ name }) => name);
  expect(regressions.filter(({ target }) => !names.includes(target))).toEqual([]);
});

it('each can be chosen by its name', () => {
  expect(targets.map(({ name }) => name)).toEqual(targetNames);
});

/** Bounded by counts, with one seed; `npm run fuzz` goes on for as long as one likes, with new ones. */
describe.each(targets)('$name', (target) => {
  beforeAll(() => target.open?.());
  afterAll(() => target.close?.());

  const own = regressions.filter((regression) => regression.target === target.name);
  it.skipIf(own.length === 0)('what once failed does not', async () => {
    for (const { input } of own) await target.check(input as never);
  });

  it(`holds for ${target.runs} inputs (seed ${seed})`, async () => {
    expect(await runTarget(target, { numRuns: target.runs, seed, endOnFailure: true })).toBe(undefined);
  });
});

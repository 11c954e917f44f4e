import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { committedSeed, runTarget } from './fuzz-target.ts';
import { readRegressions } from './regressions.ts';
import { targetNames } from './target-names.ts';
import { targets } from './targets.ts';

const regressions = readRegressions();
const seed = committedSeed();

it('every kept regression names a target that exists', () => {
  const names: string[] = targets.map(({ name }) => name);
  expect(regressions.filter(({ target }) => !names.includes(target))).toEqual([]);
});

it('the names for --target are those of the targets', () => {
  expect(targets.map(({ name }) => name)).toEqual(targetNames);
});

/** A fixed number of inputs from one seed; `npm run fuzz` runs for a given time, with new seeds. */
describe.each(targets)('$name', (target) => {
  beforeAll(() => target.open?.());
  afterAll(() => target.close?.());

  const own = regressions.filter((regression) => regression.target === target.name);
  it.skipIf(own.length === 0)('kept regressions pass', async () => {
    for (const { input } of own) await target.check(input as never);
  });

  it(`passes for ${target.runs} inputs (seed ${seed})`, async () => {
    expect(await runTarget(target, { numRuns: target.runs, seed, endOnFailure: true })).toBe(undefined);
  });
});

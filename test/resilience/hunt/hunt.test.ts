import { describe, expect, test } from 'vitest';
import { type HuntOptions, listViolations, runHunt } from './hunt.ts';
import { formatHunt } from './report.ts';

/** The short form of the hunt. `node test/resilience/hunt/run.ts` runs it for a minute or longer. */
const short = {
  ...({ replicas: 2, clients: 12, carts: 8, redis: 'single', seed: 7 } as const),
  // More unknown outcomes, because there are fewer writes.
  shopMisfortunes: 4,
};

/** Shortest duration. On a slow machine the run continues until `isEnough`. */
const seconds = 5;
const undone = (deeds: Readonly<Record<string, number>>) =>
  Object.keys(deeds).filter((name) => deeds[name] === 0);
const timeout = 400_000;

// Concurrent: each mostly waits for its store, and depends on no time but those of the shop and the leases.
describe.concurrent('the hunt', () => {
  test.each([
    ['single', 'Redis restarted, empty', 'guarded'],
    ['sentinel', 'failover', 'refuse'],
  ] as const)(
    'no update is lost while replicas are killed and stopped and Redis (%s) fails (%s), batch: %s',
    { timeout },
    async (redis, deed, batch) => {
      const options: HuntOptions = {
        ...short,
        redis,
        batch,
        seconds,
        isEnough: ({ writes, notModified }, deeds) =>
          undone(deeds).length === 0 &&
          writes.filter(({ told }) => told === 'unknown').length >= 20 &&
          writes.filter(({ told }) => told === 'accepted').length > 50 &&
          (batch === 'refuse' ||
            writes.some(({ told, kind }) => told === 'accepted' && kind === 'collection')) &&
          notModified.length > 10,
      };
      const report = await runHunt(options);
      const told = formatHunt(options, report);
      expect(listViolations(report), told).toEqual([]);
      // The run must have had faults, refusals, unknown outcomes and accepted writes.
      const { writes, counts, notModified } = report.sightings;
      expect(undone(report.deeds), told).toEqual([]);
      expect(report.deeds, told).toMatchObject({
        'kill -9 of a replica': expect.any(Number),
        [deed]: expect.any(Number),
      });
      expect(notModified.length, told).toBeGreaterThan(0);
      expect(counts['status 412 006'], told).toBeGreaterThan(0);
      expect(writes.filter((write) => write.told === 'unknown').length, told).toBeGreaterThan(0);
      expect(report.verdict.unknown.applied, told).toBeGreaterThan(0);
      expect(writes.filter((write) => write.told === 'accepted').length, told).toBeGreaterThan(50);
    },
  );

  test('the same hunt without entity tags finds lost updates', { timeout }, async () => {
    const isEnough: HuntOptions['isEnough'] = ({ writes }) =>
      writes.filter(({ told, kind }) => told === 'accepted' && kind === 'patch').length > 50;
    const report = await runHunt({ ...short, replicas: 1, seconds: 1, broken: 'tags', isEnough });
    expect(report.verdict.lost.length).toBeGreaterThan(0);
  });
});

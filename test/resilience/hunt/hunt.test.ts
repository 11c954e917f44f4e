import { describe, expect, test } from 'vitest';
import { type HuntOptions, runHunt } from './hunt.ts';
import { formatHunt } from './report.ts';

/** A minute of the whole hunt: `node test/resilience/hunt/run.ts`. This is its short form. */
const short = {
  ...({ replicas: 2, clients: 12, carts: 8, redis: 'single', seed: 7 } as const),
  // As many unknown outcomes among fewer writes.
  shopMisfortunes: 4,
};

/** Counts are the bound where a machine is slow. */
const seconds = 10;
const undone = (deeds: Readonly<Record<string, number>>) =>
  Object.keys(deeds).filter((name) => deeds[name] === 0);
const timeout = 400_000;

// Side by side: each waits for its store most of the time, and its deadlines are the shop's and the leases'.
describe.concurrent('the hunt', () => {
  test.each([
    ['single', 'Redis restarted, empty', 'guarded'],
    ['sentinel', 'failover', 'refuse'],
  ] as const)(
    'no update is lost, while replicas are killed and stopped and Redis (%s) comes and goes (%s), batch: %s',
    {
      timeout,
    },
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
      expect(report.verdict, told).toMatchObject({
        lost: [],
        invented: [],
        appliedThoughRefused: [],
        appliedTwice: [],
        stale: [],
      });
      expect([report.stuck, report.sightings.misnamed, report.faults], told).toEqual([[], [], []]);
      // A run in which nothing happened would prove nothing.
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

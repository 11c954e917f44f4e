import { expect, test } from 'vitest';
import { runHunt } from './hunt.ts';
import { formatHunt } from './report.ts';

/** A minute of the whole hunt: `node test/hunt/run.ts`. This is its short form. */
const short = { replicas: 2, clients: 12, carts: 8, redis: 'single', seed: 7 } as const;

test('no update is lost, while replicas are killed and stopped and Redis comes and goes', async () => {
  const options = { ...short, seconds: 14 };
  const report = await runHunt(options);
  const told = formatHunt(options, report);
  expect(report.verdict, told).toMatchObject({
    lost: [],
    invented: [],
    appliedThoughRefused: [],
    appliedTwice: [],
  });
  expect([report.stuck, report.sightings.stale, report.faults], told).toEqual([[], [], []]);
  // A run in which nothing happened would prove nothing.
  const { writes, counts } = report.sightings;
  expect(report.deeds['kill -9 of a replica'], told).toBeGreaterThan(0);
  expect(counts['status 412 006'], told).toBeGreaterThan(0);
  expect(writes.filter((write) => write.told === 'unknown').length, told).toBeGreaterThan(0);
  expect(report.verdict.unknown.applied, told).toBeGreaterThan(0);
  expect(writes.filter((write) => write.told === 'accepted').length, told).toBeGreaterThan(50);
});

test('the same hunt without entity tags finds lost updates', async () => {
  const report = await runHunt({ ...short, replicas: 1, seconds: 3, broken: 'tags' });
  expect(report.verdict.lost.length).toBeGreaterThan(0);
});

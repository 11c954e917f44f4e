import { expect, test } from 'vitest';
import { runSoak } from './soak.ts';

/** The short form, which ends after a number of requests and faults. `node test/resilience/soak/run.ts` takes half an hour. */
test('mixed traffic with faults: no crash, no hanging request, at most 40 more open files', {
  timeout: 400_000,
}, async () => {
  const report = await runSoak({
    visitors: 12,
    // Requests and faults end at about the same time.
    pauseMs: 25,
    restMs: 600,
    seed: 3,
    requests: 1_500,
    disturbances: 17,
    durationMs: 180_000,
  });
  expect(report.wrongs).toEqual([]);
  expect(report.disturbances).toBeGreaterThan(3);
  // The run must have had both successes and failures.
  const counted = (pattern: RegExp) =>
    Object.entries(report.met).reduce((sum, [words, times]) => sum + (pattern.test(words) ? times : 0), 0);
  expect(counted(/^20[01]/)).toBeGreaterThan(500);
  expect(counted(/^50[234]/)).toBeGreaterThan(20);
  expect(report.after.rssBytes).toBeLessThan(400 * 2 ** 20);
});

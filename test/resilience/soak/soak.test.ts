import { expect, test } from 'vitest';
import { runSoak } from './soak.ts';

/** Half an hour of the same: `node test/resilience/soak/run.ts`. Here requests and faults are counted, not minutes. */
test('mixed traffic with faults leaves no socket, no request and no crash behind', {
  timeout: 400_000,
}, async () => {
  const report = await runSoak({
    visitors: 12,
    // The requests are about done when the faults are.
    pauseMs: 25,
    restMs: 600,
    seed: 3,
    requests: 1_500,
    disturbances: 17,
    durationMs: 180_000,
  });
  expect(report.wrongs).toEqual([]);
  expect(report.disturbances).toBeGreaterThan(3);
  // A run in which nothing went wrong, or nothing right, would prove nothing.
  const counted = (pattern: RegExp) =>
    Object.entries(report.met).reduce((sum, [words, times]) => sum + (pattern.test(words) ? times : 0), 0);
  expect(counted(/^20[01]/)).toBeGreaterThan(500);
  expect(counted(/^50[234]/)).toBeGreaterThan(20);
  expect(report.after.rssBytes).toBeLessThan(400 * 2 ** 20);
});

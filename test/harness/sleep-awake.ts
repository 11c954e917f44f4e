import { setTimeout as sleep } from 'node:timers/promises';

const stepMs = 100;

/**
 * Sleeps for so long as this process is awake, in steps: where the machine stands still, not all of that counts, as it
 * does of a timer, which is then due together with whatever was to come before it.
 */
export async function sleepAwake(ms: number): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) await sleep(Math.min(stepMs, leftMs));
}

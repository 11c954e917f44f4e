import { setTimeout as sleep } from 'node:timers/promises';

const stepMs = 100;

/**
 * Sleeps in short steps, so that most of the time does not count while the machine is suspended. A single timer would
 * expire at once afterwards, together with the events that should come before it.
 */
export async function sleepAwake(ms: number): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) await sleep(Math.min(stepMs, leftMs));
}

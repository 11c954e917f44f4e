import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Calls `ask` until it gives a value. Throws after `withinMs`, which only a hang exceeds. Between two calls it waits a
 * tenth of the time passed so far, at least 20 ms and at most 200 ms.
 */
export async function eventually<T>(
  what: string,
  ask: () => T | undefined | Promise<T | undefined>,
  withinMs = 60_000,
): Promise<T> {
  const begunMs = Date.now();
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    const passedMs = Date.now() - begunMs;
    if (passedMs > withinMs) throw new Error(`no ${what} within ${withinMs} ms`);
    await sleep(Math.min(Math.max(20, passedMs / 10), 200));
  }
}

import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks again until there is an answer; bounded, so that only a hang fails. What takes long is asked for less often: a
 * tenth of the time that it has taken later, and five times a second.
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

import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again until there is an answer; bounded, so that only a hang fails. */
export async function eventually<T>(
  what: string,
  ask: () => T | undefined | Promise<T | undefined>,
  withinMs = 60_000,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`no ${what} within ${withinMs} ms`);
    await sleep(20);
  }
}

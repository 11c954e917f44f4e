import type { TestContext } from 'vitest';

/**
 * What a test opens is closed when it ends, the newest first. Each test has its own, so that tests may run side by side
 * (`describe.concurrent`), where `afterEach` would close what another one still uses. There `expect.poll` has to be the
 * context's, too: the imported one asks for the test that runs, and finds any of them, or none.
 */
export function closingAtEnd({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  return function open<T extends { close(): unknown }>(each: T): T {
    onTestFinished(async () => void (await each.close()));
    return each;
  };
}

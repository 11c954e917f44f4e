import type { TestContext } from 'vitest';

/**
 * Closes what a test opens when it ends, newest first. Each test has its own list, so tests may run concurrently
 * (`describe.concurrent`), where `afterEach` would close what other tests use. Use `expect.poll` of the test's context
 * there: the imported one cannot tell which test is running.
 */
export function closingAtEnd({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  return function open<T extends { close(): unknown }>(each: T): T {
    onTestFinished(async () => void (await each.close()));
    return each;
  };
}

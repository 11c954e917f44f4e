/**
 * What is awaited later. Where a step before that throws, that is what the test tells: a rejection of this one besides,
 * which nobody awaits any more, would fail the whole run besides.
 */
export function begun<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/**
 * A promise that is awaited later. If an earlier step throws, its error is the result of the test; without this, a
 * rejection of the promise would be unhandled and fail the whole run.
 */
export function begun<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

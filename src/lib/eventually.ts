/** A value, or a promise if the value is not known yet: awaiting a promise takes a microtask. */
export type Eventually<T> = T | Promise<T>;

/** As `then`, but calls `next` at once if the value is known; then an error of `next` is thrown, not a rejection. */
export function andThen<T, U>(value: Eventually<T>, next: (value: T) => Eventually<U>): Eventually<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs `work`; calls while it runs get the same promise. */
export function singleFlight<T>(work: () => Promise<T>): () => Promise<T> {
  let flight: Promise<T> | undefined;
  return () => (flight ??= work().finally(() => (flight = undefined)));
}

/** Settles as `work` does, or after `timeoutMs` with the value or error of `late`. */
export async function withinTime<T>(work: Promise<T>, timeoutMs: number, late: () => T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(Promise.resolve().then(late)), timeoutMs);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

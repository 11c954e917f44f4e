/** A value at once where it is known, so that nobody waits a turn for it. */
export type Eventually<T> = T | Promise<T>;

/** `next` of the value, in this very call where it is known. What `next` throws then is thrown here. */
export function andThen<T, U>(value: Eventually<T>, next: (value: T) => Eventually<U>): Eventually<U> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** What `work` comes to, or what `late` gives (or throws) once `timeoutMs` milliseconds are over. */
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

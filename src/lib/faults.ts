/**
 * An exception in the work of one exchange ends that exchange and no other. It is caught in a listener, a timer or deferred work,
 * which have no log, and is reported here.
 */
let report: (fault: unknown) => void = () => {};

/** Sets the listener of these faults; a process has one. */
export function hearFaults(listener: (fault: unknown) => void): void {
  report = listener;
}

/**
 * Runs the part of one exchange in work that many share. When it throws, `failed` ends that exchange and the fault is
 * reported; what these two throw is ignored. Never throws.
 */
export function isolate(run: () => void, failed: () => void = nothing): void {
  try {
    run();
  } catch (fault) {
    endAlone(fault, failed);
  }
}

/**
 * Makes of `act` a listener, or a timer's callback, that never throws: an exception there would end the process. `failed`
 * gets the first argument.
 */
export function isolated<A = void, B = void, C = void>(
  act: (first: A, second: B, third: C) => void,
  failed: (first: A) => void = nothing,
): (first: A, second: B, third: C) => void {
  // Three parameters, not a rest array: that would be allocated at every event.
  return (first, second, third) => {
    try {
      act(first, second, third);
    } catch (fault) {
      endAlone(fault, () => failed(first));
    }
  };
}

/** `isolate` for a promise that is not awaited. */
export function isolateLate(work: Promise<unknown>, failed: () => void = nothing): void {
  work.catch((fault: unknown) => endAlone(fault, failed));
}

/** As `isolate`, for what was caught already. */
export function endAlone(fault: unknown, failed: () => void = nothing): void {
  try {
    failed();
  } catch {
    // There is nothing more to end.
  }
  try {
    report(fault);
  } catch {
    // There is nowhere else to report it.
  }
}

function nothing(): void {}

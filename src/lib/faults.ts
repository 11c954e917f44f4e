/**
 * An exception in the work for one exchange must end only this exchange. It is caught in a listener, a timer or deferred work,
 * which have no log, and is reported here.
 */
let report: (fault: unknown) => void = () => {};

/** Sets the one listener for these faults. */
export function hearFaults(listener: (fault: unknown) => void): void {
  report = listener;
}

/**
 * Runs one exchange's part of shared work. If `run` throws, `failed` ends that exchange and the fault is reported; errors of
 * these two are ignored. Never throws.
 */
export function isolate(run: () => void, failed: () => void = nothing): void {
  try {
    run();
  } catch (fault) {
    endAlone(fault, failed);
  }
}

/**
 * Makes `act` a listener or timer callback that never throws: an exception there would end the process. `failed` gets the
 * first argument.
 */
export function isolated<A = void, B = void, C = void>(
  act: (first: A, second: B, third: C) => void,
  failed: (first: A) => void = nothing,
): (first: A, second: B, third: C) => void {
  // Three parameters instead of a rest array, which would be allocated at every event.
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

/** As `isolate`, for an error that is already caught. */
export function endAlone(fault: unknown, failed: () => void = nothing): void {
  try {
    failed();
  } catch {
    // Nothing is left to end.
  }
  try {
    report(fault);
  } catch {
    // There is nowhere else to report it.
  }
}

function nothing(): void {}

/**
 * Faults that one exchange has met where nobody else may suffer from it: each was caught at the edge of that exchange,
 * which has ended. They are reported here, since what catches them (a turn's end, an event of a socket) has no log.
 */
let report: (fault: unknown) => void = () => {};

/** Sets who hears of faults from now on; a process has one. */
export function hearFaults(listener: (fault: unknown) => void): void {
  report = listener;
}

/**
 * Runs one exchange's part of what many share. What it throws ends here: `failed` ends that exchange, and the fault is
 * reported. Neither may do harm in its turn: a log that throws is no reason to stop either.
 */
export function isolate(run: () => void, failed: () => void = nothing): void {
  try {
    run();
  } catch (fault) {
    endAlone(fault, failed);
  }
}

/**
 * `act` as a listener, or as what a timer calls: nothing is above these, so that a throw would end the process. `failed` is
 * given what comes first.
 */
export function isolated(act: () => void, failed?: () => void): () => void;
export function isolated<A>(act: (first: A) => void, failed?: (first: A) => void): (first: A) => void;
export function isolated<A, B>(
  act: (first: A, second: B) => void,
  failed?: (first: A) => void,
): (first: A, second: B) => void;
export function isolated<A, B, C>(
  act: (first: A, second: B, third: C) => void,
  failed?: (first: A) => void,
): (first: A, second: B, third: C) => void;
export function isolated(
  act: (first: unknown, second: unknown, third: unknown) => void,
  failed: (first: unknown) => void = nothing,
): (first: unknown, second: unknown, third: unknown) => void {
  // No list of arguments is made for an event that goes well.
  return (first, second, third) => {
    try {
      act(first, second, third);
    } catch (fault) {
      endAlone(fault, () => failed(first));
    }
  };
}

/** The same for a promise that nobody awaits. */
export function isolateLate(work: Promise<unknown>, failed: () => void = nothing): void {
  work.catch((fault: unknown) => endAlone(fault, failed));
}

/** As `isolate`, for what was caught already. */
export function endAlone(fault: unknown, failed: () => void = nothing): void {
  try {
    failed();
  } catch {
    // It was ended as far as it could be.
  }
  try {
    report(fault);
  } catch {
    // Nobody is left who could hear of it.
  }
}

/** What has failed has nothing that would have to be ended. */
function nothing(): void {}

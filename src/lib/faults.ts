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
export function isolate(run: () => void, failed: () => void): void {
  try {
    run();
  } catch (fault) {
    endAlone(fault, failed);
  }
}

/** As `isolate`, for what was caught already. */
export function endAlone(fault: unknown, failed: () => void): void {
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

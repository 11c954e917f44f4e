import type { App } from '../app.ts';
import type { Log } from '../telemetry/log.ts';

/** The proxy in this process, or the primary with its workers. */
export type Running = Pick<App, 'reload' | 'close'>;

/** Milliseconds until the process ends after an uncaught exception even if its drain, which takes up to 30 s, hangs. */
const crashLimitMs = 45_000;

/**
 * Calls `end` once, after the first uncaught exception: the state of the process is then unknown, so it finishes the
 * requests in flight and ends.
 */
export function endAfterFault(log: Log, end: (origin: string) => void): void {
  let isFailing = false;
  process.on('uncaughtException', (fault, origin) => {
    log.fatal({ event: 'crash', origin, err: fault }, 'an uncaught fault');
    if (isFailing) return;
    isFailing = true;
    setTimeout(() => process.exit(1), crashLimitMs).unref();
    end(origin);
  });
}

/** Drains after a signal or an uncaught exception. Resolves to the exit code. */
export function untilStopped(running: Running, log: Log): Promise<number> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (code: number, why: string, graceMs?: number) => {
      if (stopping) return;
      stopping = true;
      log.info({ event: 'draining', why }, 'draining');
      running.close(graceMs).then(
        () => resolve(code),
        () => resolve(1),
      );
    };
    // A second signal means: do not wait for requests in flight.
    const stopOrExit = (why: string, graceMs?: number) => {
      if (stopping) process.exit(1);
      stop(0, why, graceMs);
    };
    process.on('SIGTERM', () => stopOrExit('SIGTERM'));
    // Ctrl+C: there is no load balancer to wait for, so there is no grace.
    process.on('SIGINT', () => stopOrExit('SIGINT', 0));
    process.on('SIGHUP', () => {
      log.info({ event: 'reload' }, 'SIGHUP: reloading lists and keys');
      running.reload().catch((fault) => log.error({ event: 'fault', err: fault }, 'a reload failed'));
    });
    endAfterFault(log, (origin) => stop(1, origin, 0));
  });
}

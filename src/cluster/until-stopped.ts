import type { Log } from '../telemetry/log.ts';

/** What runs until it is stopped: the proxy in this process, or the workers that do its work. */
export interface Running {
  /** Looks at files anew. */
  reload(): Promise<void>;
  /** Drains; `graceMs` is how long requests are still taken, left out: as configured. */
  close(graceMs?: number): Promise<void>;
}

/** A drain takes 30 s and its grace; after a fault of its own it must end too. */
const crashLimitMs = 45_000;

/** Resolves to the exit code once a signal, or a fault that nobody caught, has led to a drain. */
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
    // Whoever asks twice does not want to wait for requests in flight.
    const stopOrExit = (why: string, graceMs?: number) => {
      if (stopping) process.exit(1);
      stop(0, why, graceMs);
    };
    process.on('SIGTERM', () => stopOrExit('SIGTERM'));
    // A person at a terminal is no balancer.
    process.on('SIGINT', () => stopOrExit('SIGINT', 0));
    process.on('SIGHUP', () => {
      log.info({ event: 'reload' }, 'SIGHUP: looking at lists and keys');
      running.reload().catch((fault) => log.error({ event: 'fault', err: fault }, 'a reload met a fault'));
    });
    // Node's state is unknown after such a fault: finish what is in flight, never go on.
    process.on('uncaughtException', (fault, origin) => {
      log.fatal({ event: 'crash', origin, err: fault }, 'a fault that nobody caught');
      setTimeout(() => process.exit(1), crashLimitMs).unref();
      stop(1, origin, 0);
    });
  });
}

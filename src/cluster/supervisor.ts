import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { Log } from '../telemetry/log.ts';
import {
  type Channel,
  createChannel,
  type Line,
  type PrimaryCalls,
  type WorkerCalls,
  type WorkerStart,
} from './channel.ts';
import { stackWithinMs } from './event-loop-watch.ts';

interface SupervisorOptions {
  readonly count: number;
  /** What a worker is started with now; asked at each start. */
  startOf(number: number): WorkerStart;
  readonly log: Log;
  onExchanges: PrimaryCalls['exchanges'];
  /** A worker's process is gone. */
  onEnd(pid: number): void;
  /** How long a worker's event loop may stand still, in milliseconds; undefined: nobody watches it. */
  readonly stallMs: number | undefined;
}

type Answers<Name extends keyof WorkerCalls> = readonly {
  readonly pid: number;
  readonly answer: Awaited<ReturnType<WorkerCalls[Name]>>;
}[];

/** One of the processes that serve; a worker that ends is followed by another one in its place. */
interface Place {
  readonly number: number;
  readonly backOff: BackOff;
  current: WorkerProcess | undefined;
  /** Starts the next worker now, where it waits for its back-off. */
  startNow: (() => void) | undefined;
}

interface WorkerProcess {
  readonly worker: Worker;
  readonly channel: Channel;
  readonly startedMs: number;
  isServing: boolean;
  /** Its place has been given to another one, or nobody is to follow. */
  isDismissed: boolean;
  /** Looks in a row without an answer to any of them. */
  silentLooks: number;
}

// A URL is not rewritten when the sources are compiled, so the name follows the one of this file.
const workerFile = new URL(
  import.meta.url.endsWith('.ts') ? './worker-main.ts' : './worker-main.js',
  import.meta.url,
);
const startTimeoutMs = 60_000;
/** An admin answer waits for no worker any longer: probes have a second. */
const askTimeoutMs = 400;
const patientTimeoutMs = 2_000;
const lookMs = 1_000;
/** A worker ends itself when its event loop stands still, and then says what it was doing: it goes first. */
const stallGraceMs = stackWithinMs + 2_000;
/** While nobody serves, the next start is no further away. */
const longestOutageMs = 1_000;

/**
 * Keeps `count` workers running. One that ends, or whose event loop stands still, is replaced: after a back-off while
 * workers do not last, within a second where nobody serves.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #places: readonly Place[];
  readonly #alive = new Set<WorkerProcess>();
  readonly #lookTimer: NodeJS.Timeout | undefined;
  #restarts = 0;
  #isStopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    // Structured clones: the configuration and metric values hold more than JSON has.
    cluster.setupPrimary({ exec: fileURLToPath(workerFile), args: [], serialization: 'advanced' });
    this.#places = Array.from({ length: options.count }, (_, i) => ({
      number: i + 1,
      backOff: createBackOff(),
      current: undefined,
      startNow: undefined,
    }));
    if (options.stallMs !== undefined) this.#lookTimer = setInterval(this.#look, lookMs).unref();
  }

  /** Workers that serve. */
  get serving(): number {
    return this.#serving().length;
  }

  get restarts(): number {
    return this.#restarts;
  }

  /** Starts all of them; resolves to their one public URL, or rejects with the first fault. */
  async start(): Promise<string> {
    const [url = ''] = await Promise.all(this.#places.map((place) => this.#fill(place)));
    return url;
  }

  /** Answers of those who serve, each with the process that gave it; who does not answer within 400 ms is left out. */
  async askAll<Name extends keyof WorkerCalls>(
    name: Name,
    argument?: Parameters<WorkerCalls[Name]>[0],
  ): Promise<Answers<Name>> {
    const asked = this.#serving().map(async ({ worker, channel }) => ({
      pid: worker.process.pid ?? 0,
      answer: await channel.ask(name, argument, askTimeoutMs),
    }));
    const settled = await Promise.allSettled(asked);
    return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])) as never;
  }

  /** The answer of any one of them; undefined when nobody answers. */
  async askOne<Name extends keyof WorkerCalls>(
    name: Name,
    argument?: Parameters<WorkerCalls[Name]>[0],
  ): Promise<Awaited<ReturnType<WorkerCalls[Name]>> | undefined> {
    // A purge waits for the store, a token perhaps for the key server.
    const timeoutMs = name === 'purge' || name === 'inspectToken' ? patientTimeoutMs : askTimeoutMs;
    for (const { channel } of this.#serving()) {
      const answer = await channel.ask(name, argument, timeoutMs).catch(() => undefined);
      if (answer !== undefined) return answer as never;
    }
    return undefined;
  }

  emitAll<Name extends keyof WorkerCalls>(name: Name, argument: Parameters<WorkerCalls[Name]>[0]): void {
    for (const { channel } of this.#alive) void channel.emit(name, argument);
  }

  /** Drains all of them; who has not ended within `withinMs` is killed. */
  async stop(graceMs: number | undefined, withinMs: number): Promise<void> {
    this.#isStopping = true;
    const ends = [...this.#alive].map(({ worker, channel }) => {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      const late = setTimeout(() => worker.process.kill('SIGKILL'), withinMs);
      worker.process.once('exit', () => {
        clearTimeout(late);
        resolve();
      });
      void channel.emit('stop', graceMs);
      return ended;
    });
    await Promise.all(ends);
    clearInterval(this.#lookTimer);
  }

  #serving(): WorkerProcess[] {
    return [...this.#alive].filter(({ isServing }) => isServing);
  }

  async #fill(place: Place): Promise<string> {
    const running = this.#fork(place);
    const { promise: ended, reject } = Promise.withResolvers<never>();
    running.worker.once('exit', (code, signal) => {
      this.#alive.delete(running);
      running.isServing = false;
      this.#options.onEnd(running.worker.process.pid ?? 0);
      reject(new Error(`worker ${place.number} ended with ${signal ?? code} before it served`));
      this.#replace(place, running, signal ?? code);
    });
    const url = running.channel.ask('start', this.#options.startOf(place.number), startTimeoutMs);
    const served = (await Promise.race([url, ended])) as string;
    // Nobody waits for it any more.
    ended.catch(() => {});
    running.isServing = !running.isDismissed;
    return served;
  }

  #fork(place: Place): WorkerProcess {
    const worker = cluster.fork();
    const calls: PrimaryCalls = {
      exchanges: this.#options.onExchanges,
      failing: () => this.#replace(place, running, 'fault'),
    };
    const running: WorkerProcess = {
      worker,
      channel: createChannel(worker.process as unknown as Line, { ...calls }),
      startedMs: performance.now(),
      isServing: false,
      isDismissed: false,
      silentLooks: 0,
    };
    place.current = running;
    this.#alive.add(running);
    worker.on('error', () => {});
    return running;
  }

  #replace(place: Place, running: WorkerProcess, why: string | number): void {
    if (running.isDismissed || this.#isStopping) return;
    running.isDismissed = true;
    running.isServing = false;
    const backOffMs = place.backOff.delayMs(running.startedMs, performance.now());
    const serving = this.serving;
    const isOutage = serving === 0;
    const delayMs = isOutage ? Math.min(backOffMs, longestOutageMs) : backOffMs;
    this.#restarts++;
    const { pid } = running.worker.process;
    this.#options.log.error(
      { event: 'worker-ended', worker: place.number, pid, why, serving, restartInMs: delayMs },
      `worker ${place.number} ended (${why}); another one starts`,
    );
    this.#refillAfter(place, delayMs);
    if (isOutage) for (const { startNow } of this.#places) if (startNow !== place.startNow) startNow?.();
  }

  #refillAfter(place: Place, delayMs: number): void {
    const refill = () => {
      clearTimeout(timer);
      place.startNow = undefined;
      if (!this.#isStopping) void this.#refill(place);
    };
    const timer = setTimeout(refill, delayMs);
    place.startNow = refill;
  }

  async #refill(place: Place): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#fill(place);
      log.info({ event: 'worker-replaced', worker: place.number }, `worker ${place.number} serves again`);
    } catch (fault) {
      log.error({ event: 'worker-not-started', worker: place.number, err: fault }, 'a worker did not start');
      // Its exit leads to the next attempt.
      place.current?.worker.process.kill('SIGKILL');
    }
  }

  /** Counted in looks of ours, not by a clock: who was stopped together with us has missed none. */
  readonly #look = (): void => {
    const { stallMs = Number.POSITIVE_INFINITY, log } = this.#options;
    for (const running of this.#alive) {
      // The start has a time-out of its own.
      if (!running.isServing && !this.#isStopping && !running.isDismissed) continue;
      const { worker, channel } = running;
      if (running.silentLooks * lookMs >= stallMs + stallGraceMs) {
        const { pid } = worker.process;
        log.error({ event: 'worker-stuck', pid }, `worker process ${pid} does not answer and is killed`);
        running.isServing = false;
        running.silentLooks = 0;
        worker.process.kill('SIGKILL');
        continue;
      }
      running.silentLooks++;
      channel.ask('ping', undefined, 60_000).then(
        () => {
          running.silentLooks = 0;
        },
        () => {},
      );
    }
  };
}

/** Milliseconds until the next start, for a worker whose places have seen so many ends in a row. */
const firstMs = 100;
const longestMs = 30_000;
/** Who has run so long did not end because of its start. */
const steadyMs = 60_000;

/** When a worker that ended is replaced: soon, and later each time while they do not last. */
interface BackOff {
  /** Of a worker that ended `nowMs`, having been started `startedMs`. */
  delayMs(startedMs: number, nowMs: number): number;
}

/** Exported for its tests. */
export function createBackOff(): BackOff {
  let ends = 0;
  return {
    delayMs(startedMs, nowMs) {
      if (nowMs - startedMs >= steadyMs) ends = 0;
      return Math.min(firstMs * 2 ** ends++, longestMs);
    },
  };
}

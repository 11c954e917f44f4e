import cluster, { type Worker } from 'node:cluster';
import { extname } from 'node:path';
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
  /** Returns what a worker starts with; called at each start. */
  startOf(number: number): WorkerStart;
  readonly log: Log;
  onExchanges: PrimaryCalls['exchanges'];
  /** Called when a worker's process has ended. */
  onEnd(pid: number): void;
  /** Milliseconds for which a worker's event loop may be blocked. */
  readonly stallMs: number | 'none';
}

export type Answers<Name extends keyof WorkerCalls> = readonly {
  readonly pid: number;
  readonly answer: Awaited<ReturnType<WorkerCalls[Name]>>;
}[];

interface WorkerProcess {
  readonly number: number;
  readonly worker: Worker;
  readonly channel: Channel;
  isServing: boolean;
  /** A replacement is already on its way. */
  isDismissed: boolean;
  /** Consecutive pings without an answer. */
  silentLooks: number;
}

// The build rewrites `.ts` in imports, but not in URLs, so the extension is taken from this file.
const workerFile = new URL(`./worker-main${extname(import.meta.url)}`, import.meta.url);
const startTimeoutMs = 60_000;
/** Longest wait for a worker's part of an answer of the admin port: probes time out after a second. */
const askTimeoutMs = 400;
/** For a question to one worker, which may wait for the store or the key server. */
const patientTimeoutMs = 2_000;
const lookMs = 1_000;
/** A worker with a blocked event loop logs its stack and ends itself: this is its extra time to do so. */
const stallGraceMs = stackWithinMs + 2_000;
/** Milliseconds before a worker is replaced: after it served, and after a start that failed, since the next may fail as well. */
const [soonMs, laterMs] = [100, 1_000];

/** Keeps `count` workers running. One that ends is replaced within a second. A blocked event loop ends its worker. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #alive = new Set<WorkerProcess>();
  /** By number. Those that they replaced may be alive, too. */
  readonly #latest: WorkerProcess[] = [];
  readonly #lookTimer: NodeJS.Timeout | undefined;
  restarts = 0;
  #isStopping = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    // Workers accept connections themselves: if the primary hands one over and the worker dies, the connection is lost.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    // `advanced` is structured clone: the configuration and metric values contain more than JSON can express.
    cluster.setupPrimary({ exec: fileURLToPath(workerFile), args: [], serialization: 'advanced' });
    if (options.stallMs !== 'none') this.#lookTimer = setInterval(this.#look, lookMs).unref();
  }

  get serving(): readonly WorkerProcess[] {
    return [...this.#alive].filter(({ isServing }) => isServing);
  }

  /** Starts all workers. Resolves to their common public URL; rejects with the first error. */
  async start(): Promise<string> {
    const starts = Array.from({ length: this.#options.count }, (_, i) => this.#launch(i + 1));
    const [url = ''] = await Promise.all(starts);
    return url;
  }

  /** The answers of the workers that serve; those that do not answer within 400 ms are left out. */
  async askAll<Name extends keyof WorkerCalls>(
    name: Name,
    argument?: Parameters<WorkerCalls[Name]>[0],
  ): Promise<Answers<Name>> {
    const asked = this.serving.map(async ({ worker, channel }) => ({
      pid: worker.process.pid ?? 0,
      answer: await channel.ask(name, argument, askTimeoutMs),
    }));
    const results = await Promise.allSettled(asked);
    return results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])) as never;
  }

  /** The answer of the first worker that gives one; undefined: none does. */
  async askOne<Name extends keyof WorkerCalls>(
    name: Name,
    argument?: Parameters<WorkerCalls[Name]>[0],
  ): Promise<Awaited<ReturnType<WorkerCalls[Name]>> | undefined> {
    for (const { channel } of this.serving) {
      const answer = await channel.ask(name, argument, patientTimeoutMs).catch(() => undefined);
      if (answer !== undefined) return answer as never;
    }
    return undefined;
  }

  emitAll<Name extends keyof WorkerCalls>(name: Name, argument: Parameters<WorkerCalls[Name]>[0]): void {
    for (const { channel } of this.#alive) void channel.emit(name, argument);
  }

  /** Drains all workers; those that have not ended within `withinMs` are killed. */
  async stop(graceMs: number, withinMs: number): Promise<void> {
    this.#isStopping = true;
    const ends = [...this.#alive].map(async ({ worker, channel }) => {
      const late = setTimeout(() => worker.process.kill('SIGKILL'), withinMs);
      const ended = new Promise((resolve) => worker.process.once('exit', resolve));
      void channel.emit('stop', graceMs);
      await ended;
      clearTimeout(late);
    });
    await Promise.all(ends);
    clearInterval(this.#lookTimer);
  }

  async #launch(number: number): Promise<string> {
    const running = this.#fork(number);
    const { worker, channel } = running;
    const { promise: ended, reject } = Promise.withResolvers<never>();
    worker.once('exit', (code, signal) => {
      this.#alive.delete(running);
      this.#options.onEnd(worker.process.pid ?? 0);
      reject(new Error(`worker ${number} ended with ${signal ?? code} before it served`));
      this.#replace(running, signal ?? code);
    });
    const url = channel.ask('start', this.#options.startOf(number), startTimeoutMs);
    // `race` also handles a later end, for which the exit listener is enough.
    const served = (await Promise.race([url, ended])) as string;
    running.isServing = !running.isDismissed;
    return served;
  }

  #fork(number: number): WorkerProcess {
    const worker = cluster.fork();
    const calls: PrimaryCalls = {
      exchanges: this.#options.onExchanges,
      failing: () => this.#replace(running, 'fault'),
    };
    const running: WorkerProcess = {
      number,
      worker,
      channel: createChannel(worker.process as unknown as Line, { ...calls }),
      isServing: false,
      isDismissed: false,
      silentLooks: 0,
    };
    this.#alive.add(running);
    this.#latest[number] = running;
    worker.on('error', () => {});
    return running;
  }

  #replace(running: WorkerProcess, why: string | number): void {
    if (running.isDismissed || this.#isStopping) return;
    const delayMs = running.isServing ? soonMs : laterMs;
    running.isDismissed = true;
    running.isServing = false;
    this.restarts++;
    const { number, worker } = running;
    const serving = this.serving.length;
    this.#options.log.error(
      { event: 'worker-ended', worker: number, pid: worker.process.pid, why, serving, restartInMs: delayMs },
      `worker ${number} ended (${why}); another one starts`,
    );
    setTimeout(() => {
      if (!this.#isStopping) void this.#relaunch(number);
    }, delayMs);
  }

  async #relaunch(number: number): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#launch(number);
      log.info({ event: 'worker-replaced', worker: number }, `worker ${number} serves again`);
    } catch (fault) {
      log.error({ event: 'worker-not-started', worker: number, err: fault }, 'a worker did not start');
      // The exit listener of the worker starts the next attempt.
      this.#latest[number]?.worker.process.kill('SIGKILL');
    }
  }

  /** Counts pings, not time: workers that were suspended together with this process miss none. */
  readonly #look = (): void => {
    const { stallMs, log } = this.#options;
    const longestMs = Number(stallMs) + stallGraceMs;
    for (const running of this.#alive) {
      // A starting worker is bounded by the time-out of its start.
      if (!running.isServing && !this.#isStopping && !running.isDismissed) continue;
      const { worker, channel } = running;
      if (running.silentLooks * lookMs >= longestMs) {
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

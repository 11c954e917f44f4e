import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { Log } from '../telemetry/log.ts';
import { type BackOff, createBackOff } from './back-off.ts';
import { type Channel, createChannel, type Line } from './channel.ts';
import type { PrimaryCalls, WorkerCalls, WorkerStart } from './messages.ts';

export interface SupervisorOptions {
  readonly count: number;
  /** What a worker is started with now; asked at each start. */
  startOf(number: number): WorkerStart;
  readonly log: Log;
  onExchanges: PrimaryCalls['exchanges'];
  /** A worker's process is gone. */
  onEnd(pid: number): void;
}

export interface Supervisor {
  /** Starts all of them; resolves to their one public URL, or rejects with the first fault. */
  start(): Promise<string>;
  /** Answers of those who serve, each with the process that gave it; who does not answer in time is left out. */
  askAll<Name extends keyof WorkerCalls>(
    name: Name,
    argument?: Parameters<WorkerCalls[Name]>[0],
  ): Promise<Answers<Name>>;
  /** The answer of any one of them; undefined when nobody answers. */
  askOne<Name extends keyof WorkerCalls>(
    name: Name,
    argument?: Parameters<WorkerCalls[Name]>[0],
  ): Promise<Awaited<ReturnType<WorkerCalls[Name]>> | undefined>;
  tellAll<Name extends keyof WorkerCalls>(name: Name, argument: Parameters<WorkerCalls[Name]>[0]): void;
  /** Workers that serve. */
  readonly serving: number;
  readonly restarts: number;
  /** Drains all of them; who has not ended within `withinMs` is killed. */
  stop(graceMs: number | undefined, withinMs: number): Promise<void>;
}

export type Answers<Name extends keyof WorkerCalls> = readonly {
  readonly pid: number;
  readonly answer: Awaited<ReturnType<WorkerCalls[Name]>>;
}[];

interface Place {
  readonly number: number;
  readonly backOff: BackOff;
  current: Running | undefined;
}

interface Running {
  readonly worker: Worker;
  readonly channel: Channel;
  readonly startedMs: number;
  isServing: boolean;
  /** Its place has been given to another one, or nobody is to follow. */
  isDismissed: boolean;
}

// A URL is not rewritten when the sources are compiled, so the name follows the one of this file.
const workerFile = new URL(
  import.meta.url.endsWith('.ts') ? './worker-main.ts' : './worker-main.js',
  import.meta.url,
);
const startTimeoutMs = 60_000;
const askTimeoutMs = 2_000;

/** Keeps `count` workers running: one that ends is replaced, with a back-off while they do not last. */
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { log, count } = options;
  // Structured clones: the configuration and metric values hold more than JSON has.
  cluster.setupPrimary({ exec: fileURLToPath(workerFile), args: [], serialization: 'advanced' });
  const places: Place[] = Array.from({ length: count }, (_, i) => ({
    number: i + 1,
    backOff: createBackOff(),
    current: undefined,
  }));
  const alive = new Set<Running>();
  let restarts = 0;
  let stopping = false;

  async function fill(place: Place): Promise<string> {
    const worker = cluster.fork();
    const { pid = 0 } = worker.process;
    const calls: PrimaryCalls = {
      exchanges: options.onExchanges,
      failing: () => replace(place, running, 'fault'),
    };
    const running: Running = {
      worker,
      channel: createChannel(worker.process as unknown as Line, { ...calls }),
      startedMs: performance.now(),
      isServing: false,
      isDismissed: false,
    };
    place.current = running;
    alive.add(running);
    worker.on('error', () => {});
    const ended = new Promise<never>((_, reject) => {
      worker.once('exit', (code, signal) => {
        alive.delete(running);
        running.isServing = false;
        options.onEnd(pid);
        reject(new Error(`worker ${place.number} ended with ${signal ?? code} before it served`));
        replace(place, running, signal ?? code);
      });
    });
    const url = running.channel.ask('start', options.startOf(place.number), startTimeoutMs);
    const served = (await Promise.race([url, ended])) as string;
    // Nobody waits for it any more.
    ended.catch(() => {});
    running.isServing = !running.isDismissed;
    return served;
  }

  function replace(place: Place, running: Running, why: string | number): void {
    if (running.isDismissed || stopping) return;
    running.isDismissed = true;
    running.isServing = false;
    const delayMs = place.backOff.delayMs(running.startedMs, performance.now());
    restarts++;
    const { pid } = running.worker.process;
    log.error(
      { event: 'worker-ended', worker: place.number, pid, why, restartInMs: delayMs },
      `worker ${place.number} ended (${why}); another one starts`,
    );
    setTimeout(() => {
      if (!stopping) void refill(place);
    }, delayMs);
  }

  async function refill(place: Place): Promise<void> {
    try {
      await fill(place);
      log.info({ event: 'worker-replaced', worker: place.number }, `worker ${place.number} serves again`);
    } catch (fault) {
      log.error({ event: 'worker-not-started', worker: place.number, err: fault }, 'a worker did not start');
      // Its exit leads to the next attempt.
      place.current?.worker.process.kill('SIGKILL');
    }
  }

  const serving = () => [...alive].filter(({ isServing }) => isServing);

  return {
    async start() {
      const [url = ''] = await Promise.all(places.map(fill));
      return url;
    },
    async askAll(name, argument) {
      const asked = serving().map(async ({ worker, channel }) => ({
        pid: worker.process.pid ?? 0,
        answer: await channel.ask(name, argument, askTimeoutMs),
      }));
      const settled = await Promise.allSettled(asked);
      return settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])) as never;
    },
    async askOne(name, argument) {
      for (const { channel } of serving()) {
        const answer = await channel.ask(name, argument, askTimeoutMs).catch(() => undefined);
        if (answer !== undefined) return answer as never;
      }
      return undefined;
    },
    tellAll(name, argument) {
      for (const { channel } of alive) void channel.tell(name, argument);
    },
    get serving() {
      return serving().length;
    },
    get restarts() {
      return restarts;
    },
    async stop(graceMs, withinMs) {
      stopping = true;
      const ends = [...alive].map(
        ({ worker, channel }) =>
          new Promise<void>((resolve) => {
            const late = setTimeout(() => worker.process.kill('SIGKILL'), withinMs);
            worker.process.once('exit', () => {
              clearTimeout(late);
              resolve();
            });
            void channel.tell('stop', graceMs);
          }),
      );
      await Promise.all(ends);
    },
  };
}

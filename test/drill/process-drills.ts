import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../faults/ask.ts';
import { eventually } from '../harness/eventually.ts';
import { startRedis } from '../harness/redis-processes.ts';
import type { LogLine, Shopward, ShopwardOptions } from '../harness/shopward.ts';
import type { Drill, DrillGroup, Length, Stage } from './drill.ts';
import {
  frontOf,
  leaseThatNobodyLeaves,
  nothing,
  patientSettings,
  startReplica,
  storeAway,
} from './replicas.ts';
import { startDrillShop } from './shop.ts';

interface LoggingStage extends Stage {
  readonly shopward: Shopward;
  readonly pipe: LogPipe;
}

/** One process that logs into a pipe, whose reader is in our hands. */
async function withLogPipe(config: object = {}, env: ShopwardOptions['env'] = {}): Promise<LoggingStage> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-drill-'));
  const fifo = join(folder, 'log');
  execFileSync('mkfifo', [fifo]);
  const pipe = new LogPipe(fifo);
  const shop = await startDrillShop();
  const server = await startRedis({});
  const shopward = await startReplica(
    shop,
    { ...patientSettings(server.url), ...config },
    { env, launcher: ['sh', '-c', `exec "$@" >'${fifo}'`, 'sh'] },
  );
  const front = frontOf(shopward);
  return {
    shopward,
    pipe,
    shop,
    processes: [shopward],
    fronts: () => [front],
    log: () => pipe.lines,
    close: async () => {
      pipe.close();
      await server.close();
      shop.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Reads a pipe as long as it is asked to. */
class LogPipe {
  readonly lines: LogLine[] = [];
  readonly #descriptor: number;
  readonly #timer: NodeJS.Timeout;
  #isReading = true;
  #isOpen = true;
  #rest = '';

  constructor(fifo: string) {
    this.#descriptor = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
    this.#timer = setInterval(() => this.#read(), 20);
  }

  stop(): void {
    this.#isReading = false;
  }

  goOn(): void {
    this.#isReading = true;
  }

  /** Nobody reads any more: writers get EPIPE. */
  close(): void {
    clearInterval(this.#timer);
    if (this.#isOpen) closeSync(this.#descriptor);
    this.#isOpen = false;
  }

  #read(): void {
    const bytes = Buffer.alloc(65_536);
    while (this.#isReading && this.#isOpen) {
      let length = 0;
      try {
        length = readSync(this.#descriptor, bytes);
      } catch (fault) {
        if ((fault as NodeJS.ErrnoException).code !== 'EAGAIN') throw fault;
      }
      if (length === 0) return;
      const pieces = `${this.#rest}${bytes.toString('latin1', 0, length)}`.split('\n');
      this.#rest = pieces.pop() ?? '';
      this.lines.push(...pieces.map((piece) => JSON.parse(piece) as LogLine));
    }
  }
}

const workers = 3;

interface WorkersStage extends LoggingStage {
  /** Process ids of those that run now. */
  pids(): readonly number[];
  /** One more than there were when it was called. */
  awaitReplaced(): Promise<unknown>;
  /** All of them, as `/readyz` has it. */
  awaitServing(): Promise<unknown>;
}

/** Three workers, with a fault that they do not have: SIGUSR2 makes an event loop stand still. */
async function withWorkers(length: Length): Promise<WorkersStage> {
  // It sleeps between its rounds: they need not take a processor from the other drills.
  const getStuck =
    "process.on('SIGUSR2', function getStuck() { for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); });";
  const config = {
    workers,
    ...(length === 'short' && { limits: { eventLoopStall: '3s' } }),
  };
  const preload = `data:text/javascript,${encodeURIComponent(getStuck)}`;
  const stage = await withLogPipe(config, { NODE_OPTIONS: `--import ${preload}` });
  const { shopward, pipe } = stage;
  const replaced = () => pipe.lines.filter(({ event }) => event === 'worker-replaced').length;
  return {
    ...stage,
    pids: () => {
      const text = readFileSync(`/proc/${shopward.pid}/task/${shopward.pid}/children`, 'utf8');
      return text.trim().split(' ').filter(Boolean).map(Number);
    },
    awaitReplaced: () => {
      const before = replaced();
      return eventually('a replaced worker', () => (replaced() > before ? true : undefined));
    },
    awaitServing: () =>
      eventually('all workers', async () => {
        const state = await fetch(`${shopward.adminUrl}/readyz`).then((response) => response.text());
        return state.includes('not serving') ? undefined : true;
      }),
  };
}

/** What was in a worker that ended: no answer, and what it had claimed stays shut for a while. */
const workerLost = {
  read: ['no answer'],
  write: ['no answer', ...storeAway.write],
  // The shop's own, of a token whose first answer was lost.
  refresh: ['no answer', '401 004', ...storeAway.refresh],
};

/** Until every process has lost lines: a pipe and 1 MiB beside it are full of them, 3.8 KB each, as it has the path twice. */
async function fillLog({ port, adminUrl }: Shopward): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const path = `/stores/${Array(24).fill('x'.repeat(72)).join('/')}`;
  const burst = () =>
    Promise.all(Array.from({ length: 48 }, () => ask(port, { method: 'GET', path }, agent)));
  // Where only some of the workers have, it says how many.
  await eventually('lines that are lost in every process', async () => {
    await burst();
    const { reasons } = (await (await fetch(`${adminUrl}/readyz`)).json()) as { reasons: string[] };
    return reasons.includes('log: its reader takes no lines, some are lost') || undefined;
  });
  agent.destroy();
}

const stoppedReader = (processes: number): Drill<LoggingStage> => ({
  name: `the log's reader stops, and goes on (workers: ${processes})`,
  disturb: async ({ pipe, shopward }) => {
    pipe.stop();
    await fillLog(shopward);
    await sleep(1_000);
    pipe.goOn();
    await eventually('the word about lost lines', () =>
      pipe.lines.find(({ event }) => event === 'log-lines-dropped'),
    );
    return undefined;
  },
  maySee: nothing,
  told: [/^log-lines-dropped: /, /log: its reader takes no lines, some are lost/],
  linesAtMost: 10,
});

const workerDrills: DrillGroup<WorkersStage> = {
  stage: withWorkers,
  drills: [
    {
      name: 'one of three workers is stopped (SIGSTOP)',
      disturb: async ({ pids, awaitReplaced }) => {
        const replaced = awaitReplaced();
        process.kill(pids()[0] ?? Number.NaN, 'SIGSTOP');
        await replaced;
        return undefined;
      },
      maySee: workerLost,
      told: [/^worker-stuck: /, /^worker-replaced: /, /1 of 3 workers not serving/],
      linesAtMost: 6,
    },
    {
      name: "one of three workers' event loop stands still",
      disturb: async ({ pids, awaitReplaced }) => {
        const replaced = awaitReplaced();
        process.kill(pids()[0] ?? Number.NaN, 'SIGUSR2');
        await replaced;
        return undefined;
      },
      maySee: workerLost,
      told: [/^event-loop-stuck: /, /^worker-replaced: /],
      linesAtMost: 6,
    },
    {
      name: 'all workers are killed, one after another, four times',
      disturb: async ({ pids, awaitServing }, length) => {
        for (let round = 0; round < (length === 'full' ? 4 : 1); round += 1) {
          for (const pid of pids()) {
            process.kill(pid, 'SIGKILL');
            await sleep(300);
          }
          await awaitServing();
        }
        return undefined;
      },
      maySee: workerLost,
      told: [/^worker-ended: /, /^worker-replaced: /],
      linesAtMost: 40,
    },
    stoppedReader(workers),
  ],
};

const logDrills: DrillGroup<LoggingStage> = {
  stage: () => withLogPipe({ entityTags: leaseThatNobodyLeaves }),
  drills: [
    stoppedReader(1),
    {
      name: "the log's reader is gone for good",
      disturb: async ({ pipe }, length) => {
        pipe.close();
        await sleep(length === 'full' ? 6_000 : 1_500);
        return undefined;
      },
      maySee: nothing,
      told: [/log: .*(gone|EPIPE)/],
      linesAtMost: 0,
    },
  ],
};

export const processDrills: readonly DrillGroup[] = [workerDrills, logDrills];

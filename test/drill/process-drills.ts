import { execFileSync } from 'node:child_process';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { Agent } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { ask } from '../faults/ask.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { startRedis } from '../harness/redis-processes.ts';
import type { LogLine, Shopward } from '../harness/shopward.ts';
import type { Drill, Length, Stage } from './drill.ts';
import { frontOf, nothing, patientSettings, startReplica, storeAway } from './replicas.ts';
import { startDrillShop } from './shop.ts';
import type { Tally } from './tally.ts';

interface Workers {
  readonly shopward: Shopward;
  /** Process ids of those that run now. */
  pids(): readonly number[];
  awaitReplaced(times: number): Promise<unknown>;
  /** All of them, as `/readyz` has it. */
  awaitServing(): Promise<unknown>;
}

/** Three workers, with a fault that they do not have: SIGUSR2 makes an event loop stand still. */
async function withWorkers(length: Length, disturb: (workers: Workers) => Promise<unknown>): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-drill-'));
  const preload = join(folder, 'get-stuck.mjs');
  writeFileSync(preload, "process.on('SIGUSR2', function getStuck() { for (;;); });");
  const shop = await startDrillShop();
  const server = await startRedis({});
  const shopward = await startReplica(
    shop,
    {
      ...patientSettings(server.url),
      // Its own: while no worker serves, another program could be given the port.
      listen: { port: await freePort() },
      workers: 3,
      ...(length === 'short' && { limits: { eventLoopStall: '1s' } }),
    },
    { env: { NODE_OPTIONS: `--import ${pathToFileURL(preload)}` } },
  );
  const front = frontOf(shopward);
  const replaced = () => shopward.log().filter(({ event }) => event === 'worker-replaced').length;
  const workers: Workers = {
    shopward,
    pids: () => {
      const text = readFileSync(`/proc/${shopward.pid}/task/${shopward.pid}/children`, 'utf8');
      return text.trim().split(' ').filter(Boolean).map(Number);
    },
    awaitReplaced: (times) =>
      eventually(`${times} replaced workers`, () => (replaced() >= times ? true : undefined)),
    awaitServing: () =>
      eventually('all workers', async () => {
        const state = await fetch(`${shopward.adminUrl}/readyz`).then((response) => response.text());
        return state.includes('not serving') ? undefined : true;
      }),
  };
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb: async () => void (await disturb(workers)),
    close: async () => {
      await server.close();
      shop.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** What was in a worker that ended: no answer, and what it had claimed stays shut for a while. */
const workerLost = {
  read: ['no answer'],
  write: ['no answer', ...storeAway.write],
  // The shop's own, of a token whose first answer was lost.
  refresh: ['no answer', '401 004', ...storeAway.refresh],
};

const workerDrills: readonly Drill[] = [
  {
    name: 'one of three workers is stopped (SIGSTOP)',
    stage: (length) =>
      withWorkers(length, async (workers) => {
        process.kill(workers.pids()[0] ?? 0, 'SIGSTOP');
        await workers.awaitReplaced(1);
      }),
    maySee: workerLost,
    told: [/^worker-stuck: /, /^worker-replaced: /, /1 of 3 workers not serving/],
    linesAtMost: 6,
  },
  {
    name: "one of three workers' event loop stands still",
    stage: (length) =>
      withWorkers(length, async (workers) => {
        process.kill(workers.pids()[0] ?? 0, 'SIGUSR2');
        await workers.awaitReplaced(1);
      }),
    maySee: workerLost,
    told: [/^event-loop-stuck: /, /^worker-replaced: /],
    linesAtMost: 6,
  },
  {
    name: 'all workers are killed, one after another, four times',
    stage: (length) =>
      withWorkers(length, async (workers) => {
        const rounds = length === 'full' ? 4 : 1;
        for (let round = 0; round < rounds; round += 1) {
          for (const pid of workers.pids()) {
            process.kill(pid, 'SIGKILL');
            await sleep(300);
          }
          await workers.awaitServing();
        }
      }),
    maySee: workerLost,
    told: [/^worker-ended: /, /^worker-replaced: /],
    linesAtMost: 40,
  },
];

/** One process that logs into a pipe, whose reader is in our hands. */
async function withLogPipe(
  workers: number,
  disturb: (pipe: LogPipe, shopward: Shopward) => Promise<unknown>,
): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), 'shopward-drill-'));
  const fifo = join(folder, 'log');
  execFileSync('mkfifo', [fifo]);
  const pipe = new LogPipe(fifo);
  const shop = await startDrillShop();
  const server = await startRedis({});
  const shopward = await startReplica(
    shop,
    { ...patientSettings(server.url), workers },
    { launcher: ['sh', '-c', `exec "$@" >'${fifo}'`, 'sh'] },
  );
  const front = frontOf(shopward);
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    log: () => pipe.lines,
    disturb: async () => void (await disturb(pipe, shopward)),
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

/** More lines than a pipe and what is kept beside it hold. */
async function fillLog(shopward: Shopward, requests: number): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const path = `/stores/${Array(24).fill('x'.repeat(72)).join('/')}`;
  for (let i = 0; i < requests; i += 16) {
    await Promise.all(Array.from({ length: 16 }, () => ask(shopward.port, { method: 'GET', path }, agent)));
  }
  agent.destroy();
}

const stoppedReader = (workers: number): Drill => ({
  name: `the log's reader stops, and goes on (workers: ${workers})`,
  stage: () =>
    withLogPipe(workers, async (pipe, shopward) => {
      pipe.stop();
      await fillLog(shopward, 1_000 * workers);
      await sleep(1_000);
      pipe.goOn();
      await eventually('the word about lost lines', () =>
        pipe.lines.find(({ event }) => event === 'log-lines-dropped'),
      );
    }),
  maySee: nothing,
  told: [/^log-lines-dropped: /, /log: its reader takes no lines, some are lost/],
  linesAtMost: 10,
});

const logDrills: readonly Drill[] = [
  stoppedReader(1),
  stoppedReader(2),
  {
    name: "the log's reader is gone for good",
    stage: (length) =>
      withLogPipe(1, async (pipe) => {
        pipe.close();
        await sleep(length === 'full' ? 6_000 : 1_500);
      }),
    maySee: nothing,
    told: [/log: .*(gone|EPIPE)/],
    linesAtMost: 0,
  },
];

/** A stranger with more idle connections than there are descriptors, from an address of its own. */
async function usedUpDescriptors(length: Length): Promise<Stage> {
  const shop = await startDrillShop();
  const shopward = await startReplica(
    shop,
    { log: { level: 'info' } },
    { launcher: ['sh', '-c', 'ulimit -n 256; exec "$@"', 'sh'] },
  );
  const front = frontOf(shopward);
  const disturb = async (_: Tally) => {
    const idle = Array.from({ length: 400 }, () =>
      connect({ port: shopward.port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => {}),
    );
    await sleep(length === 'full' ? 6_000 : 1_500);
    for (const socket of idle) socket.destroy();
    return undefined;
  };
  return { shop, processes: [shopward], fronts: () => [front], disturb, close: async () => shop.close() };
}

const descriptorDrills: readonly Drill[] = [
  {
    name: 'few descriptors (`ulimit -n 256`), a stranger opens 400 connections',
    stage: usedUpDescriptors,
    maySee: nothing,
    told: [/open files/, /^connections-full: /],
    linesAtMost: 4,
  },
];

export const processDrills = [...workerDrills, ...logDrills, ...descriptorDrills];

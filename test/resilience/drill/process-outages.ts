import { setTimeout as sleep } from 'node:timers/promises';
import { childrenOf } from '../../harness/children-of.ts';
import { eventually } from '../../harness/eventually.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import type { OutageGroup, Length } from './outage.ts';
import { settingsOf, stageOf, startReplica, storeAway } from './replicas.ts';
import { startOutageShop } from '../faults/shop.ts';

const workers = 3;

/** Three workers, in which SIGUSR2 blocks the event loop. */
async function withWorkers(length: Length) {
  // The loop sleeps, to leave the processor to the other outages.
  const getStuck =
    "process.on('SIGUSR2', function getStuck() { for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); });";
  const preload = `data:text/javascript,${encodeURIComponent(getStuck)}`;
  const shop = await startOutageShop();
  const server = await startRedis({});
  const shopward = await startReplica(
    shop,
    { ...settingsOf(server.url), workers, ...(length === 'short' && { limits: { eventLoopStall: '3s' } }) },
    { env: { NODE_OPTIONS: `--import ${preload}` } },
  );
  const replaced = () => shopward.log().filter(({ event }) => event === 'worker-replaced').length;
  return {
    ...stageOf(shop, shopward, () => server.close()),
    /** Process ids of the running workers. */
    pids: () => childrenOf(shopward),
    /** Resolves once one more worker has been replaced. */
    awaitReplaced: () => {
      const before = replaced();
      return eventually('a replaced worker', () => (replaced() > before ? true : undefined));
    },
    /** Resolves once `/readyz` no longer names a worker that does not serve. */
    awaitServing: () =>
      eventually('all workers', async () => {
        const state = await fetch(`${shopward.adminUrl}/readyz`).then((response) => response.text());
        return state.includes('not serving') ? undefined : true;
      }),
  };
}

/** A request of a worker that ended gets no answer, and its claim blocks others for a while. */
const workerLost = {
  read: ['no answer'],
  write: ['no answer', ...storeAway.write],
  // 401: the shop's refusal of a token whose first answer was lost.
  refresh: ['no answer', '401 004', ...storeAway.refresh],
};

const workerOutages: OutageGroup<Awaited<ReturnType<typeof withWorkers>>> = {
  stage: withWorkers,
  outages: [
    {
      name: 'one of three workers is stopped (SIGSTOP)',
      disturb: async ({ pids, awaitReplaced }) => {
        const replaced = awaitReplaced();
        process.kill(pids()[0] ?? Number.NaN, 'SIGSTOP');
        await replaced;
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
      },
      maySee: workerLost,
      told: [/^worker-ended: /, /^worker-replaced: /],
      linesAtMost: 40,
    },
  ],
};

export const processOutages: readonly OutageGroup[] = [workerOutages];

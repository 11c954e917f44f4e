import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { FaultProxy, Faults } from '../../harness/fault-proxy.ts';
import type { SingleRedis } from '../../harness/redis-processes.ts';
import type { Shopward } from '../../harness/shopward.ts';
import type { Random } from '../hunt/random.ts';

export interface Disturbed {
  readonly upstream: FaultProxy;
  readonly store: FaultProxy;
  readonly redis: SingleRedis;
  readonly shopward: Shopward;
  readonly random: Random;
  /** Mean pause between two faults. */
  readonly restMs: number;
}

const faultMs = 700;
const head = '\r\n\r\n';

const upstreamFaults: readonly Faults[] = [
  { connections: 'refuse' },
  { connections: 'reset' },
  { toClient: { drop: true } },
  { toClient: { delayMs: 300 } },
  { toClient: { duplicate: true } },
  { toClient: { bytesPerSecond: 500 } },
  { toClient: { replaceBy: 'nonsense\r\n\r\n' } },
  { toClient: { cut: { bytes: 0, by: 'fin' } } },
  { toClient: { cut: { behind: head, bytes: 30, by: 'reset' } } },
  { toClient: { cut: { behind: head, bytes: 30, by: 'stall' } } },
];
const storeFaults: readonly Faults[] = [
  { connections: 'refuse' },
  { toClient: { delayMs: 400 } },
  { toClient: { drop: true } },
];

/** Causes one fault after another, with pauses between. When it resolves, new connections work. */
export async function disturb(
  { upstream, store, redis, shopward, random, restMs }: Disturbed,
  isOver: () => boolean,
  onDisturbance: () => void,
): Promise<void> {
  const through = (proxy: FaultProxy, faults: Faults) => async () => {
    await proxy.set(faults);
    await sleep(faultMs);
    // Connections that met the fault stay broken; their clients must close them.
    await proxy.abandon();
  };
  const deck: readonly (() => Promise<unknown>)[] = [
    ...upstreamFaults.map((faults) => through(upstream, faults)),
    ...storeFaults.map((faults) => through(store, faults)),
    async () => {
      redis.process?.pause();
      await sleep(faultMs);
      redis.process?.resume();
    },
    async () => redis.process?.restart(),
    () => command(redis.url, 'SCRIPT', 'FLUSH'),
    () => command(redis.url, 'FLUSHALL'),
    async () => shopward.signal('SIGHUP'),
  ];
  while (!isOver()) {
    for (const act of random.shuffle(deck)) {
      await sleep(restMs / 2 + random.upTo(restMs));
      if (isOver()) break;
      await act();
      onDisturbance();
    }
  }
}

async function command(url: string, ...words: [string, ...string[]]): Promise<void> {
  const client = new Redis(url, { maxRetriesPerRequest: 1, commandTimeout: 1000 });
  client.on('error', () => {});
  await client.call(...words).catch(() => {});
  client.disconnect();
}

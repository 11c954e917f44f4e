import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisSentinel, SingleRedis } from '../../harness/redis-processes.ts';
import type { Random } from './random.ts';
import type { Replica } from './replicas.ts';

export interface Nemesis {
  /** How often each fault was caused. */
  readonly deeds: Readonly<Record<string, number>>;
  /** Causes one fault after another until `isOver`; all of them have ended when it resolves. */
  run(isOver: () => boolean): Promise<void>;
}

export interface NemesisOptions {
  readonly replicas: readonly Replica[];
  readonly random: Random;
  readonly leaseMs: number;
  readonly redis: SingleRedis | RedisSentinel;
}

type Deed = readonly [name: string, times: number, act: () => Promise<void>];

/** Faults in random order. Each round causes every fault once, then repeats the more frequent ones. */
export function createNemesis(options: NemesisOptions): Nemesis {
  const { random, leaseMs, redis } = options;
  const cards: readonly Deed[] = [
    ...ofReplicas(options),
    ...('failover' in redis ? ofSentinel(redis, random) : ofSingle(redis, options)),
  ];
  const again = cards.flatMap((card) => Array.from({ length: card[1] - 1 }, () => card));
  const deeds = Object.fromEntries(cards.map(([name]) => [name, 0]));
  return {
    deeds,
    async run(isOver) {
      while (!isOver()) {
        for (const [name, , act] of [...random.shuffle(cards), ...random.shuffle(again)]) {
          await sleep(leaseMs / 20 + random.upTo(leaseMs / 3));
          if (isOver()) break;
          deeds[name] = (deeds[name] ?? 0) + 1;
          await act();
        }
      }
    },
  };
}

function ofReplicas({ replicas, random, leaseMs }: NemesisOptions): Deed[] {
  return [
    ['kill -9 of a replica', 5, () => random.pick(replicas).replace()],
    [
      'SIGSTOP of a replica',
      4,
      async () => {
        const replica = random.pick(replicas);
        replica.stop();
        await sleep(random.upTo(leaseMs * 1.5));
        replica.resume();
      },
    ],
    [
      'SIGSTOP, then kill -9',
      1,
      async () => {
        const replica = random.pick(replicas);
        replica.stop();
        await sleep(random.upTo(leaseMs));
        await replica.replace();
      },
    ],
  ];
}

function ofSingle(
  { process, url }: SingleRedis,
  { replicas, random, leaseMs }: Pick<NemesisOptions, 'replicas' | 'random' | 'leaseMs'>,
): Deed[] {
  const link = async (faults: Parameters<NonNullable<Replica['link']>['set']>[0]) => {
    const { link: chosen } = random.pick(replicas);
    await chosen?.set(faults);
    await sleep(random.upTo(leaseMs / 2));
    await chosen?.heal();
  };
  return [
    ['Redis restarted, empty', 1, async () => process?.restart()],
    ['FLUSHALL', 1, () => ask(url, (client) => client.flushall())],
    ['SCRIPT FLUSH', 1, () => ask(url, (client) => client.script('FLUSH'))],
    [
      'SIGSTOP of Redis',
      1,
      async () => {
        process?.pause();
        await sleep(random.upTo(leaseMs / 2));
        process?.resume();
      },
    ],
    ['link to Redis reset', 1, async () => random.pick(replicas).link?.resetAll()],
    ['link to Redis refused', 1, () => link({ connections: 'refuse' })],
    ['link to Redis slow', 1, () => link({ toUpstream: { delayMs: 150 }, toClient: { delayMs: 150 } })],
    ['replies of Redis lost', 1, () => link({ toClient: { drop: true } })],
  ];
}

function ofSentinel(redis: RedisSentinel, random: Random): Deed[] {
  return [
    ['failover', 1, () => redis.failover()],
    [
      'kill -9 of the primary',
      1,
      async () => {
        const before = await redis.primary();
        await before.kill();
        await redis.awaitNewPrimary(before);
        await before.restart();
      },
    ],
    [
      'SIGSTOP of the primary',
      1,
      async () => {
        const before = await redis.primary();
        before.pause();
        await redis.awaitNewPrimary(before);
        await sleep(random.upTo(500));
        before.resume();
      },
    ],
    ['primary restarted at once, empty', 1, async () => (await redis.primary()).restart()],
    ['FLUSHALL', 1, async () => ask(await urlOf(redis), (client) => client.flushall())],
    ['SCRIPT FLUSH', 1, async () => ask(await urlOf(redis), (client) => client.script('FLUSH'))],
  ];
}

async function urlOf(redis: RedisSentinel): Promise<string> {
  return `redis://127.0.0.1:${(await redis.primary()).port}`;
}

async function ask(url: string, what: (client: Redis) => Promise<unknown>): Promise<void> {
  const client = new Redis(url, { maxRetriesPerRequest: 1, commandTimeout: 1000 });
  client.on('error', () => {});
  await what(client).catch(() => {});
  client.disconnect();
}

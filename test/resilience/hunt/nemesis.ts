import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { RedisSentinel, SingleRedis } from '../../harness/redis-processes.ts';
import type { Random } from './random.ts';
import type { Replica } from './replicas.ts';

export type Nemesis = ReturnType<typeof createNemesis>;

export interface NemesisOptions {
  readonly replicas: readonly Replica[];
  readonly random: Random;
  readonly leaseMs: number;
  readonly redis: SingleRedis | RedisSentinel;
}

/** Faults by their names. */
type Deeds = Readonly<Record<string, () => Promise<unknown>>>;

/** How often a round causes a fault. Default: 1. */
const timesOf: Readonly<Record<string, number>> = { 'kill -9 of a replica': 5, 'SIGSTOP of a replica': 4 };

/** Faults in random order. Each round causes every fault once, then repeats the more frequent ones. */
export function createNemesis(options: NemesisOptions) {
  const { random, leaseMs, redis } = options;
  const cards = Object.entries({
    ...ofReplicas(options),
    ...('failover' in redis ? ofSentinel(redis, random) : ofSingle(redis, options)),
  });
  const again = cards.flatMap((card) => Array.from({ length: (timesOf[card[0]] ?? 1) - 1 }, () => card));
  /** How often each fault was caused. */
  const deeds: Record<string, number> = Object.fromEntries(cards.map(([name]) => [name, 0]));
  return {
    deeds,
    /** Causes one fault after another until `isOver`; all of them have ended when it resolves. */
    async run(isOver: () => boolean) {
      while (!isOver()) {
        for (const [name, act] of [...random.shuffle(cards), ...random.shuffle(again)]) {
          await sleep(leaseMs / 20 + random.upTo(leaseMs / 3));
          if (isOver()) break;
          deeds[name] = (deeds[name] ?? 0) + 1;
          await act();
        }
      }
    },
  };
}

function ofReplicas({ replicas, random, leaseMs }: NemesisOptions): Deeds {
  return {
    'kill -9 of a replica': () => random.pick(replicas).replace(),
    'SIGSTOP of a replica': async () => {
      const replica = random.pick(replicas);
      replica.stop();
      await sleep(random.upTo(leaseMs * 1.5));
      replica.resume();
    },
    'SIGSTOP, then kill -9': async () => {
      const replica = random.pick(replicas);
      replica.stop();
      await sleep(random.upTo(leaseMs));
      await replica.replace();
    },
  };
}

function ofSingle(
  { process, url }: SingleRedis,
  { replicas, random, leaseMs }: Pick<NemesisOptions, 'replicas' | 'random' | 'leaseMs'>,
): Deeds {
  const link = async (faults: Parameters<NonNullable<Replica['link']>['set']>[0]) => {
    const { link: chosen } = random.pick(replicas);
    await chosen?.set(faults);
    await sleep(random.upTo(leaseMs / 2));
    await chosen?.heal();
  };
  return {
    'Redis restarted, empty': async () => process?.restart(),
    FLUSHALL: () => ask(url, (client) => client.flushall()),
    'SCRIPT FLUSH': () => ask(url, (client) => client.script('FLUSH')),
    'SIGSTOP of Redis': async () => {
      process?.pause();
      await sleep(random.upTo(leaseMs / 2));
      process?.resume();
    },
    'link to Redis reset': async () => random.pick(replicas).link?.resetAll(),
    'link to Redis refused': () => link({ connections: 'refuse' }),
    'link to Redis slow': () => link({ toUpstream: { delayMs: 150 }, toClient: { delayMs: 150 } }),
    'replies of Redis lost': () => link({ toClient: { drop: true } }),
  };
}

function ofSentinel(redis: RedisSentinel, random: Random): Deeds {
  return {
    failover: () => redis.failover(),
    'kill -9 of the primary': async () => {
      const before = await redis.primary();
      await before.kill();
      await redis.awaitNewPrimary(before);
      await before.restart();
    },
    'SIGSTOP of the primary': async () => {
      const before = await redis.primary();
      before.pause();
      await redis.awaitNewPrimary(before);
      await sleep(random.upTo(500));
      before.resume();
    },
    'primary restarted at once, empty': async () => (await redis.primary()).restart(),
    FLUSHALL: async () => ask(await urlOf(redis), (client) => client.flushall()),
    'SCRIPT FLUSH': async () => ask(await urlOf(redis), (client) => client.script('FLUSH')),
  };
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

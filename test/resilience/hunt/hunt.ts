import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import {
  type RedisSentinel,
  type SingleRedis,
  startRedis,
  startSentinel,
} from '../../harness/redis-processes.ts';
import { checkHistory } from './history.ts';
import { createNemesis, type Nemesis } from './nemesis.ts';
import { createRandom } from './random.ts';
import { type Replica, startReplica } from './replicas.ts';
import type { ShopMessage, ShopOrder, ShopReport } from './shop.ts';
import { Shopper, type Sightings } from './shopper.ts';

export interface HuntOptions {
  readonly replicas: number;
  readonly clients: number;
  readonly seconds: number;
  /** On a slow machine the run continues until this returns true, for at most two more minutes. Default: always true. */
  readonly isEnough?: (sightings: Sightings, deeds: Nemesis['deeds']) => boolean;
  readonly carts: number;
  readonly redis: 'single' | 'sentinel';
  readonly seed: number;
  /** `batch` of the resource `/carts`. Default: refuse. */
  readonly batch?: 'refuse' | 'guarded';
  /** Factor for the rate of writes with an unknown outcome. Default: 1. */
  readonly shopMisfortunes?: number;
  /** No faults, and the shop always answers, so that every refusal comes from shopward. */
  readonly isCalm?: boolean;
  /**
   * `tags`: shopward runs without entity tags; `landing`: the shop acts later than the lease allows. Both must lose updates.
   */
  readonly broken?: 'tags' | 'landing' | undefined;
}

export type HuntReport = Awaited<ReturnType<typeof runHunt>>;

const leaseMs = 3000;
/** sendBy + landing + 0.5s <= lease; 100 ms are left for delays in the kernel. */
const landsWithinMs = 1900;
const secret = 'a secret of the hunt only'.repeat(2);
const resource = { collection: '/carts', member: '/carts/{cart_id}', methods: ['PATCH', 'DELETE'] };
const entityTags = { lease: `${leaseMs}ms`, sendBy: '500ms', wait: '1s' };
const config = {
  store: { timeout: '250ms' },
  upstream: { responseTimeout: '2s' },
  auth: { algorithms: ['HS256'], keys: { secret } },
  urlResolver: false,
  refreshTokens: false,
};

/** Replicas of the real proxy over a real Redis, clients that write the same few carts, and a nemesis that causes faults. */
export async function runHunt(options: HuntOptions) {
  const { carts: cartCount, seconds, clients, seed, isEnough } = options;
  const redis = options.redis === 'sentinel' ? await startSentinel({ replicas: 1 }) : await startRedis({});
  const shop = await startShop(options);
  const replicas = await startReplicas(options, redis, shop.port);
  const sightings: Sightings = { writes: [], counts: {}, notModified: [], misnamed: [] };
  const carts = Array.from({ length: cartCount }, (_, i) => `c${i}`);
  const shopperOf = (i: number, ports: readonly number[]) =>
    new Shopper({
      name: `w${i}`,
      user: `user-${i % 10}`,
      secret,
      carts,
      ports,
      random: createRandom(seed + 1000 + i),
      sightings,
    });
  const ports = replicas.map(({ port }) => port);
  const shoppers = Array.from({ length: clients }, (_, i) => shopperOf(i, ports));
  const nemesis = createNemesis({ replicas, redis, leaseMs, random: createRandom(seed) });

  // A new store hands out no tags at first, so the hunt begins once one cart can be written.
  const scout = shopperOf(20_000, ports);
  await scout.findObstacle('c0', leaseMs * 20);
  scout.close();

  const until = performance.now() + seconds * 1000;
  const isOver = () =>
    performance.now() > until &&
    (isEnough?.(sightings, nemesis.deeds) !== false || performance.now() > until + 120_000);
  if (options.isCalm === true) shop.calm();
  const misfortunes = options.isCalm === true ? [] : [nemesis.run(isOver)];
  await Promise.all([...misfortunes, ...shoppers.map((shopper) => shopper.run(isOver))]);
  shop.calm();
  /** Carts that could not be written after the faults had ended. */
  const stuck = await findStuck(carts, replicas, (i, port) => shopperOf(i, [port]));
  const { applied, counts } = await shop.report();
  if (stuck.length > 0) for (const replica of replicas) console.error(replica.port, await replica.tell());

  for (const shopper of shoppers) shopper.close();
  for (const replica of replicas) await replica.close();
  shop.close();
  await redis.close();
  return {
    verdict: checkHistory(applied, sightings.writes, sightings.notModified),
    applied,
    shop: counts,
    sightings,
    deeds: nemesis.deeds,
    stuck,
    /** Log lines of the replicas that show a bug. */
    faults: replicas.flatMap((replica) => replica.faults()),
  };
}

/** What must not happen, with everything of the kind that the run found. */
export function violationsOf({ verdict, stuck, sightings, faults }: HuntReport) {
  const { lost, invented, appliedThoughRefused, appliedTwice, stale } = verdict;
  return {
    'lost updates': lost,
    'accepted, but applied differently': invented,
    'refused, but applied': appliedThoughRefused,
    'applied twice': appliedTwice,
    'stale 304': stale,
    '304 with another tag': sightings.misnamed,
    'stuck carts': stuck,
    'bugs in the log': faults,
  } satisfies Readonly<Record<string, readonly unknown[]>>;
}

/** The violations as one list; empty: the run found none. */
export function listViolations(report: HuntReport): readonly unknown[] {
  return Object.values(violationsOf(report)).flat();
}

function startReplicas(
  { replicas, broken, batch = 'refuse' }: HuntOptions,
  redis: SingleRedis | RedisSentinel,
  upstreamPort: number,
): Promise<Replica[]> {
  const isSentinel = 'failover' in redis;
  const store = isSentinel ? { ...config.store, replicas: 1 } : config.store;
  const tags = broken === 'tags' ? false : { ...entityTags, resources: [{ ...resource, batch }] };
  const one = () =>
    startReplica({
      upstreamPort,
      config: { ...config, store, entityTags: tags },
      redisUrl: redis.url,
      redisPort: isSentinel ? undefined : redis.process?.port,
    });
  return Promise.all(Array.from({ length: replicas }, one));
}

/** Writes every cart through every replica, within the time that all leases may take. Returns what failed. */
async function findStuck(
  carts: readonly string[],
  replicas: readonly Replica[],
  shopperOf: (i: number, port: number) => Shopper,
): Promise<string[]> {
  const proofs = replicas.flatMap(({ port }, i) => {
    const shopper = shopperOf(10_000 + i, port);
    return carts.map(async (cart) => {
      const obstacle = await shopper.findObstacle(cart, leaseMs * 20);
      return obstacle === undefined ? [] : [`${cart} through replica ${i}: ${obstacle}`];
    });
  });
  return (await Promise.all(proofs)).flat();
}

async function startShop({ seed, broken, shopMisfortunes = 1 }: HuntOptions) {
  const file = join(import.meta.dirname, 'shop.ts');
  const landing = broken === 'landing' ? 'broken' : '';
  const args = [String(seed), String(landsWithinMs), String(shopMisfortunes), landing];
  const child: ChildProcess = fork(file, args, { execArgv: [] });
  const hear = async () => (await once(child, 'message'))[0] as ShopMessage;
  const order = (what: ShopOrder) => void child.send(what);
  const first = await hear();
  return {
    port: 'port' in first ? first.port : 0,
    calm: () => order('calm'),
    async report(): Promise<ShopReport> {
      const heard = hear();
      order('report');
      const message = await heard;
      return 'report' in message ? message.report : { applied: [], counts: {} };
    },
    close: () => void child.kill('SIGKILL'),
  };
}

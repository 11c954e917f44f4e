import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { migrateSlots } from '../faults/migrate-slots.ts';
import { type RedisSentinel, startCluster, startRedis, startSentinel } from '../harness/redis-processes.ts';
import type { Shopward } from '../harness/shopward.ts';
import { addClusterReplica } from './cluster-replica.ts';
import type { Drill, Length, Stage } from './drill.ts';
import { frontOf, nothing, patientSettings, settingsOf, startReplica, storeAway } from './replicas.ts';
import { startDrillShop } from './shop.ts';

/** One process over a Sentinel; `replicas` is `store.replicas`. */
async function overSentinel(
  nodes: number,
  replicas: number,
  disturb: (sentinel: RedisSentinel) => Promise<unknown>,
  settings = settingsOf,
): Promise<Stage> {
  const shop = await startDrillShop();
  const sentinel = await startSentinel({ replicas: nodes - 1 });
  const shopward = await startReplica(shop, settings(sentinel.url, { replicas }));
  const front = frontOf(shopward);
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb: async () => void (await disturb(sentinel)),
    close: async () => {
      await sentinel.close();
      shop.close();
    },
  };
}

/** For so long things stay broken. */
const awayMs = { full: 8_000, short: 1_500 };

const sentinelDrills: readonly Drill[] = [
  {
    name: 'Sentinel: a failover is asked for (3 nodes, `store.replicas: 1`)',
    stage: () => overSentinel(3, 1, (sentinel) => sentinel.failover()),
    maySee: storeAway,
    told: [/^hold: no tag is handed out .*another node is the primary/],
    linesAtMost: 12,
    eventAtMost: { hold: 1 },
  },
  {
    name: 'Sentinel: the primary is lost (3 nodes, `store.replicas: 1`)',
    stage: () =>
      overSentinel(3, 1, async (sentinel) => {
        const primary = await sentinel.primary();
        await primary.kill();
        await sentinel.awaitNewPrimary(primary);
      }),
    maySee: storeAway,
    told: [/^hold: no tag is handed out .*another node is the primary/, /^store: .*ECONNREFUSED/],
    linesAtMost: 16,
    eventAtMost: { hold: 1 },
  },
  {
    name: 'Sentinel: a replica is lost (3 nodes, `store.replicas: 1`)',
    stage: (length) =>
      overSentinel(
        3,
        1,
        async ({ servers }) => {
          await servers[2]?.kill();
          await sleep(awayMs[length]);
        },
        patientSettings,
      ),
    // One of two still confirms: nobody notices.
    maySee: nothing,
    told: [],
    linesAtMost: 2,
  },
  {
    name: 'the one replica stands still for 4 s (2 nodes, `store.replicas: 1`)',
    stage: () =>
      overSentinel(2, 1, async ({ servers }) => {
        servers[1]?.pause();
        await sleep(4_000);
        servers[1]?.resume();
      }),
    maySee: storeAway,
    told: [/0 of 1 replicas confirm/, /^store-replicas: /],
    linesAtMost: 6,
  },
];

async function overCluster(disturb: (length: Length) => Promise<unknown>, length: Length, cluster: Cluster) {
  const shop = await startDrillShop();
  const shopward = await startReplica(shop, settingsOf(cluster.url));
  const front = frontOf(shopward);
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb: async () => void (await disturb(length)),
    close: async () => {
      await cluster.close();
      shop.close();
    },
  };
}

type Cluster = Awaited<ReturnType<typeof startCluster>>;

const clusterDrills: readonly Drill[] = [
  {
    name: 'Cluster: slots are moved while all goes on',
    stage: async (length) => {
      const cluster = await startCluster();
      const reshard = async () => {
        const finish = await migrateSlots(cluster.nodes);
        await sleep(awayMs[length] / 4);
        await finish();
      };
      return overCluster(reshard, length, cluster);
    },
    maySee: storeAway,
    told: [/^hold: .*slots of a Cluster were moved/],
    linesAtMost: 20,
  },
  {
    name: 'Cluster: a failover of one node is asked for',
    stage: async (length) => {
      const cluster = await startCluster();
      const [first] = cluster.nodes;
      if (first === undefined) throw new Error('a Cluster without nodes');
      const replica = await addClusterReplica(first);
      const stage = await overCluster(() => replica.promote(), length, cluster);
      const close = async () => {
        await replica.close();
        await stage.close();
      };
      return { ...stage, close };
    },
    maySee: storeAway,
    told: [/^hold: /],
    linesAtMost: 12,
  },
];

/** One process over one Redis that is commanded meanwhile; `user` is before the `@` of its URL. */
async function overOne(
  setUp: (redis: Redis) => Promise<string>,
  disturb: (redis: Redis) => Promise<unknown>,
): Promise<Stage> {
  const shop = await startDrillShop();
  const server = await startRedis({});
  const redis = new Redis(server.url, { retryStrategy: () => 50 });
  redis.on('error', () => {});
  const user = await setUp(redis);
  const shopward = await startReplica(shop, settingsOf(server.url.replace('//', `//${user}`)));
  const front = frontOf(shopward);
  return {
    shop,
    processes: [shopward],
    fronts: () => [front],
    disturb: async () => void (await disturb(redis)),
    close: async () => {
      redis.disconnect();
      await server.close();
      shop.close();
    },
  };
}

const ruleDrills: readonly Drill[] = [
  {
    name: "the password of Redis's user is changed, and changed back",
    stage: (length) =>
      overOne(
        async (redis) => {
          await redis.call('ACL', 'SETUSER', 'shop', 'on', '>sesame', '~shopward:*', '&shopward:*', '+@all');
          return 'shop:sesame@';
        },
        async (redis) => {
          await redis.call('ACL', 'SETUSER', 'shop', 'resetpass', '>other');
          await redis.call('CLIENT', 'KILL', 'USER', 'shop');
          await sleep(awayMs[length]);
          await redis.call('ACL', 'SETUSER', 'shop', 'resetpass', '>sesame');
        },
      ),
    maySee: storeAway,
    told: [/^store: .*WRONGPASS/],
    linesAtMost: 8,
  },
  {
    name: 'Redis is full (`noeviction`), and gets room',
    stage: (length) =>
      overOne(
        async () => '',
        async (redis) => {
          await redis.config('SET', 'maxmemory', '1');
          // Its fill is looked at every four seconds.
          await sleep(Math.max(awayMs[length], 7_000));
          await redis.config('SET', 'maxmemory', '0');
        },
      ),
    maySee: storeAway,
    told: [/^store: .*OOM/, /^store-memory: Redis is N% full/],
    linesAtMost: 8,
  },
];

/** A rolling change: an old replica, then a new one beside it, then the new one alone. */
function rolling(
  before: object,
  after: object,
  whileBoth: (redis: Redis) => Promise<unknown>,
): Drill['stage'] {
  return async (length) => {
    const shop = await startDrillShop();
    const server = await startRedis({});
    const redis = new Redis(server.url);
    const start = (change: object) =>
      startReplica(shop, { ...settingsOf(server.url, { timeout: '1s' }), ...change });
    const processes: Shopward[] = [await start(before), await start(after)];
    const [old, young] = processes.map((one) => frontOf(one));
    if (old === undefined || young === undefined) throw new Error('two replicas were started');
    let fronts = [old];
    return {
      shop,
      processes,
      fronts: () => fronts,
      disturb: async () => {
        fronts = [old, young];
        await whileBoth(redis);
        await sleep(awayMs[length]);
        fronts = [young];
        await sleep(200);
        await processes[0]?.stop();
        // Until the last word of the old one is ten seconds old.
        await sleep(length === 'full' ? 12_000 : 500);
      },
      close: async () => {
        redis.disconnect();
        await server.close();
        shop.close();
      },
    };
  };
}

const lease = (seconds: number) => ({ entityTags: { lease: `${seconds}s`, sendBy: '1s', wait: '500ms' } });
const digestKey = (key: string) => ({ refreshTokens: { digestKey: key } });

const skewDrills: readonly Drill[] = [
  {
    name: 'two replicas with another `entityTags.lease`, Redis loses its data (FLUSHALL)',
    stage: rolling(lease(3), lease(5), (redis) => redis.flushall()),
    maySee: storeAway,
    told: [/entityTags\.lease/, /^store-settings: /],
    linesAtMost: 16,
  },
  {
    name: 'two replicas with another `refreshTokens.digestKey`',
    stage: rolling(digestKey('the key of before'), digestKey('the key of afterwards'), async () => {}),
    maySee: storeAway,
    told: [/refreshTokens\.digestKey/, /^store-settings: /],
    linesAtMost: 16,
  },
];

export const storeDrills = [...sentinelDrills, ...clusterDrills, ...ruleDrills, ...skewDrills];

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type RedisCluster, startCluster, startRedis, startSentinel } from '../../harness/redis-processes.ts';
import type { Shopward } from '../../harness/shopward.ts';
import { migrateSlots } from '../faults/migrate-slots.ts';
import type { Front } from './client.ts';
import { addClusterReplica, type ClusterReplica } from './cluster-replica.ts';
import type { Outage, OutageGroup, Stage } from './outage.ts';
import {
  frontOf,
  leaseThatNoClientLeaves,
  nothing,
  settingsOf,
  stageOf,
  startReplica,
  storeAway,
} from './replicas.ts';
import { startOutageShop } from '../faults/shop.ts';

/** How long a fault lasts. */
const awayMs = { full: 8_000, short: 1_500 };

/** The `hold` line, and `/readyz`. */
const toldOfFailover = [/^hold: no tag is handed out /, /another node is the primary/];

type SentinelStage = Awaited<ReturnType<typeof overSentinel>>;

/** One process over three nodes and a Sentinel, with `store.replicas: 1`. */
async function overSentinel(more: object = {}) {
  const shop = await startOutageShop();
  const sentinel = await startSentinel({ replicas: 2 });
  const shopward = await startReplica(shop, { ...settingsOf(sentinel.url, { replicas: 1 }), ...more });
  return { ...stageOf(shop, shopward, () => sentinel.close()), sentinel };
}

const sentinelOutages: OutageGroup<SentinelStage> = {
  stage: () => overSentinel(),
  outages: [
    // Runs first, because lines about replicas, which the other outages cause too, are logged once a minute.
    {
      name: 'every replica of Redis stands still for 4 s (`store.replicas: 1`)',
      disturb: async ({ sentinel }, _length, _tally, untilTold) => {
        const primary = await sentinel.primary();
        const replicas = sentinel.servers.filter((server) => server !== primary);
        for (const replica of replicas) replica.pause();
        await Promise.all([sleep(4_000), untilTold()]);
        for (const replica of replicas) replica.resume();
      },
      maySee: storeAway,
      told: [/0 of 1 replicas confirm/, /^store-replicas: /],
      linesAtMost: 6,
    },
    {
      name: 'Sentinel: a failover is asked for (3 nodes, `store.replicas: 1`)',
      disturb: async ({ sentinel }) => sentinel.failover(),
      maySee: storeAway,
      told: toldOfFailover,
      linesAtMost: 12,
    },
    {
      name: 'Sentinel: the primary is lost (3 nodes, `store.replicas: 1`)',
      disturb: async ({ sentinel }) => {
        const primary = await sentinel.primary();
        await primary.kill();
        await sentinel.awaitNewPrimary(primary);
      },
      maySee: storeAway,
      told: [...toldOfFailover, /^store: .*ECONNREFUSED/],
      linesAtMost: 16,
    },
  ],
};

const lostReplicaOutages: OutageGroup<SentinelStage> = {
  stage: () => overSentinel({ entityTags: leaseThatNoClientLeaves }),
  outages: [
    {
      name: 'Sentinel: a replica is lost (3 nodes, `store.replicas: 1`)',
      disturb: async ({ sentinel }, length) => {
        await sentinel.servers[2]?.kill();
        await sleep(awayMs[length]);
      },
      // One of two replicas still confirms, so no request is affected.
      maySee: nothing,
      told: [],
      linesAtMost: 2,
    },
  ],
};

interface ClusterStage extends Stage {
  readonly cluster: RedisCluster;
  /** Replica of the first node, once an outage has added it. */
  replica?: ClusterReplica;
}

async function overCluster(): Promise<ClusterStage> {
  const shop = await startOutageShop();
  const cluster = await startCluster();
  const shopward = await startReplica(shop, settingsOf(cluster.url));
  const closing = async () => {
    await stage.replica?.close();
    await cluster.close();
  };
  const stage: ClusterStage = { ...stageOf(shop, shopward, closing), cluster };
  return stage;
}

const clusterOutages: OutageGroup<ClusterStage> = {
  stage: overCluster,
  outages: [
    {
      name: 'Cluster: slots are moved while all goes on',
      disturb: async ({ cluster }, length) => {
        const finish = await migrateSlots(cluster.nodes);
        await sleep(awayMs[length] / 4);
        await finish();
      },
      maySee: storeAway,
      told: [/no tag is handed out/],
      linesAtMost: 20,
    },
    {
      name: 'Cluster: a failover of one node is asked for',
      prepare: async (stage) => {
        const [first] = stage.cluster.nodes;
        if (first === undefined) throw new Error('a Cluster without nodes');
        stage.replica = await addClusterReplica(first);
      },
      disturb: async ({ replica }) => replica?.promote(),
      maySee: storeAway,
      told: [/no tag is handed out/],
      linesAtMost: 12,
    },
  ],
};

/** One process with its own Redis user, and a connection that configures that Redis. */
async function overOne() {
  const shop = await startOutageShop();
  const server = await startRedis({});
  const redis = new Redis(server.url, { retryStrategy: () => 50 });
  redis.on('error', () => {});
  await redis.call('ACL', 'SETUSER', 'shop', 'on', '>sesame', '~shopward:*', '&shopward:*', '+@all');
  const shopward = await startReplica(shop, settingsOf(server.url.replace('//', '//shop:sesame@')));
  const closing = () => {
    redis.disconnect();
    return server.close();
  };
  return { ...stageOf(shop, shopward, closing), redis };
}

const ruleOutages: OutageGroup<Awaited<ReturnType<typeof overOne>>> = {
  stage: overOne,
  outages: [
    {
      name: "the password of Redis's user is changed, and changed back",
      disturb: async ({ redis }, length, _tally, untilTold) => {
        await redis.call('ACL', 'SETUSER', 'shop', 'resetpass', '>other');
        await redis.call('CLIENT', 'KILL', 'USER', 'shop');
        await Promise.all([sleep(awayMs[length]), untilTold()]);
        await redis.call('ACL', 'SETUSER', 'shop', 'resetpass', '>sesame');
      },
      maySee: storeAway,
      told: [/^store: .*WRONGPASS/],
      linesAtMost: 8,
    },
    {
      name: 'Redis is full (`noeviction`), and gets room',
      disturb: async ({ redis }, length, _tally, untilTold) => {
        await redis.config('SET', 'maxmemory', '1');
        await Promise.all([sleep(awayMs[length]), untilTold()]);
        await redis.config('SET', 'maxmemory', '0');
      },
      maySee: storeAway,
      told: [/^store: .*OOM/],
      linesAtMost: 8,
    },
  ],
};

interface Settings {
  readonly entityTags: object;
  readonly refreshTokens: object;
}

interface RollingStage extends Stage {
  readonly redis: Redis;
  /** Starts a replica with these settings beside the running ones. */
  add(change: Partial<Settings>): Promise<void>;
  /** Indexes in `processes` of the replicas that get requests. */
  serving: readonly number[];
}

const lease = (seconds: number) => ({ entityTags: { lease: `${seconds}s`, sendBy: '1s', wait: '500ms' } });
const digestKey = (key: string) => ({ refreshTokens: { digestKey: key } });

/** One replica, to which a rolling change adds others. */
async function rolling(): Promise<RollingStage> {
  const shop = await startOutageShop();
  const server = await startRedis({});
  const redis = new Redis(server.url);
  let settings: Settings = { ...lease(3), ...digestKey('the key of before') };
  const processes: Shopward[] = [];
  const fronts: Front[] = [];
  const stage: RollingStage = {
    redis,
    shop,
    processes,
    serving: [0],
    fronts: () => fronts.filter((_, i) => stage.serving.includes(i)),
    add: async (change) => {
      settings = { ...settings, ...change };
      const config = { ...settingsOf(server.url, { timeout: '1s' }), ...settings };
      const shopward = await startReplica(shop, config);
      processes.push(shopward);
      fronts.push(frontOf(shopward));
    },
    close: async () => {
      redis.disconnect();
      await server.close();
      shop.close();
    },
  };
  await stage.add({});
  return stage;
}

/** A rolling change: the old replica, then a new one beside it, then the new one alone. */
function change(
  settings: Partial<Settings>,
  whileBoth: (redis: Redis) => Promise<unknown>,
): Pick<Outage<RollingStage>, 'prepare' | 'disturb'> {
  return {
    prepare: (stage) => stage.add(settings),
    disturb: async (stage, length) => {
      const young = stage.processes.length - 1;
      stage.serving = [young - 1, young];
      await whileBoth(stage.redis);
      await sleep(awayMs[length]);
      stage.serving = [young];
      await sleep(200);
      await stage.processes[young - 1]?.stop();
      // Until the last record of the old replica is ten seconds old.
      await sleep(length === 'full' ? 12_000 : 500);
    },
  };
}

const skewOutages: OutageGroup<RollingStage> = {
  stage: rolling,
  outages: [
    {
      name: 'two replicas with another `entityTags.lease`, Redis loses its data (FLUSHALL)',
      ...change(lease(5), (redis) => redis.flushall()),
      maySee: storeAway,
      told: [/entityTags\.lease/],
      linesAtMost: 16,
    },
    {
      name: 'two replicas with another `refreshTokens.digestKey`',
      ...change(digestKey('the key of afterwards'), async () => {}),
      maySee: storeAway,
      told: [/refreshTokens\.digestKey/, /^store-settings: /],
      linesAtMost: 16,
    },
  ],
};

export const storeOutages: readonly OutageGroup[] = [
  skewOutages,
  sentinelOutages,
  clusterOutages,
  ruleOutages,
  lostReplicaOutages,
];

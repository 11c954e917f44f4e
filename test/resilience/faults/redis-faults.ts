import { Redis } from 'ioredis';
import { ageRedis } from '../../harness/aged-redis.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { startCluster, startRedis, startSentinel } from '../../harness/redis-processes.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { type FaultRow, type RowResult, runRows, type Stage } from './fault-row.ts';
import { migrateSlots } from './migrate-slots.ts';
import { healthy } from './routes.ts';
import { shopwardSettings } from './settings.ts';
import { type ShiftedRedis, startShiftedRedis } from './shifted-redis.ts';
import { type OutageShop, startOutageShop } from './shop.ts';

const [tagStore, tokenStore] = ['503 tag-store-unavailable', '503 token-store-unavailable'];
/** Reads have no tag, and writes that cannot be checked are refused. */
const away = {
  seen: '200',
  but: {
    ...healthy,
    'tracked GET': '200',
    'tagged PATCH': tagStore,
    'child POST': tagStore,
    'token exchange': tokenStore,
  },
} as const;
/** A short fault: a call at that moment may fail, but nothing worse. */
const blink = {
  seen: '200',
  but: {
    ...healthy,
    'tracked GET': ['200 tagged', '200'],
    'tagged PATCH': ['200 tagged', tagStore, '412 006'],
    'child POST': ['201', '201 tagged', '503 overloaded', tagStore],
    'token exchange': ['201', tokenStore],
  },
} as const;
/** The store is new: earlier tags are refused, and for one lease no write is accepted. */
const unavailable = { oldTag: tagStore, oldTagLater: '412 006' } as const;

/** Faults of Redis. */
export async function runRedisFaults(): Promise<RowResult[]> {
  const shop = await startOutageShop();
  const shifted = await startShiftedRedis();
  const results = await Promise.all([
    runRows(3, () => openSingle(shop)),
    runRows(2, () => openSentinel(shop)),
    runRows(1, () => openCluster(shop)),
    ...(shifted === undefined ? [] : [runRows(1, () => openShifted(shop, shifted))]),
  ]);
  shop.close();
  return results.flat();
}

async function openSingle(shop: OutageShop): Promise<Stage> {
  const redis = await startRedis({});
  await ageRedis(redis.process?.port ?? 0);
  const proxy = await startFaultProxy(redis.process?.port ?? 0);
  const settings = shopwardSettings(`redis://127.0.0.1:${proxy.port}`);
  const direct = new Redis(redis.url, { retryStrategy: () => 50 });
  direct.on('error', () => {});
  const configure = (name: string, value: string) => direct.config('SET', name, value);
  const mend = () => proxy.heal();
  const rows: readonly FaultRow[] = [
    {
      name: 'kill -9, then started again, empty',
      begin: () => redis.process?.kill(),
      end: () => redis.process?.restart(),
      ...away,
      ...unavailable,
    },
    {
      name: 'stopped (SIGSTOP), then continued',
      begin: () => redis.process?.pause(),
      end: () => redis.process?.resume(),
      ...away,
      // A claim without an answer may have been granted. It then blocks writes until it is released or expires.
      oldTag: ['200 tagged', '503 resource-busy', tagStore, '412 006'],
    },
    {
      name: 'slower than its time-out',
      begin: () => proxy.set({ toClient: { delayMs: 4_000 } }),
      end: mend,
      ...away,
      oldTag: ['200 tagged', '503 resource-busy', tagStore, '412 006'],
    },
    {
      name: 'cannot be connected to',
      begin: () => proxy.set({ connections: 'refuse' }),
      end: mend,
      ...away,
      oldTag: ['200 tagged', tagStore],
    },
    {
      name: 'speaks something else',
      begin: () => proxy.set({ toClient: { replaceBy: 'HTTP/1.1 400 Bad Request\r\n\r\n' } }),
      end: mend,
      ...away,
      oldTag: ['200 tagged', '503 resource-busy', tagStore, '412 006'],
    },
    {
      name: 'out of memory (noeviction)',
      begin: () => configure('maxmemory', '1'),
      end: () => configure('maxmemory', '0'),
      ...away,
      // Redis refuses the first write of a script, unless it is a DEL: then the whole script passes.
      but: {
        ...away.but,
        'tracked GET': ['200', '200 tagged'],
        'child POST': ['201', '201 tagged', '503 overloaded', tagStore],
      },
      oldTag: '200 tagged',
    },
    {
      name: 'read-only (a replica without a primary)',
      begin: () => direct.replicaof('127.0.0.1', 1),
      end: () => direct.replicaof('NO', 'ONE'),
      ...away,
      // Another replication id: another epoch.
      ...unavailable,
    },
    {
      name: 'wants a replica that is not there',
      begin: () => configure('min-replicas-to-write', '1'),
      end: () => configure('min-replicas-to-write', '0'),
      ...away,
      oldTag: '200 tagged',
    },
    {
      name: 'SCRIPT FLUSH',
      begin: () => direct.script('FLUSH'),
      end: () => {},
      seen: '200',
      but: healthy,
      oldTag: '412 006',
    },
    {
      name: 'FLUSHALL',
      begin: () => direct.flushall(),
      end: () => {},
      ...away,
      // Redis answers, but leases may be lost, so tags wait. Tokens have no leases.
      but: { ...away.but, 'token exchange': '201' },
      ...unavailable,
    },
    {
      name: 'every connection reset',
      begin: () => proxy.resetAll(),
      end: () => {},
      ...blink,
      oldTag: ['412 006', '200 tagged', tagStore],
    },
  ];
  const close = async () => {
    direct.disconnect();
    await proxy.close();
    await redis.close();
  };
  return { shopward: await start(shop, settings), rows, close };
}

async function openSentinel(shop: OutageShop): Promise<Stage> {
  const group = await startSentinel({ replicas: 1 });
  const settings = shopwardSettings(group.url, { replicas: 1 });
  let before = await group.primary();
  await ageRedis(before.port);
  const rows: readonly FaultRow[] = [
    {
      name: 'failover by Sentinel',
      begin: () => group.failover(),
      end: () => {},
      ...blink,
      but: { ...blink.but, 'tracked GET': ['200', '200 tagged'] },
      ...unavailable,
      oldTag: [tagStore, '412 006'],
    },
    {
      name: 'kill -9 of the primary',
      begin: async () => {
        before = await group.primary();
        await before.kill();
      },
      end: async () => {
        await group.awaitNewPrimary(before);
        await before.restart();
      },
      ...away,
      ...unavailable,
    },
    {
      name: 'the one replica stopped (`WAIT`)',
      begin: async () => {
        const primary = await group.primary();
        before = group.servers.find((server) => server !== primary) ?? primary;
        before.pause();
      },
      end: () => before.resume(),
      ...away,
      but: { ...away.but, 'tracked GET': ['200', '200 tagged'] },
      oldTag: ['200 tagged', tagStore, '412 006'],
    },
  ];
  return { shopward: await start(shop, settings), rows, close: group.close };
}

async function openCluster(shop: OutageShop): Promise<Stage> {
  const cluster = await startCluster();
  await Promise.all(cluster.nodes.map(({ port }) => ageRedis(port, 'shopward', 64)));
  const settings = shopwardSettings(cluster.url);
  let finish: () => Promise<void> = async () => {};
  const rows: readonly FaultRow[] = [
    {
      name: 'Cluster: slots on the move',
      begin: async () => {
        finish = await migrateSlots(cluster.nodes);
      },
      end: () => finish(),
      // A half-moved slot answers no script for a new cart, and the other node has another epoch.
      ...blink,
      but: { ...blink.but, 'tracked GET': '200', 'tagged PATCH': tagStore, 'child POST': tagStore },
      ...unavailable,
      times: 8,
      meets: 200,
    },
    {
      name: 'Cluster: one of three nodes stopped',
      begin: () => cluster.nodes[2]?.pause(),
      end: () => cluster.nodes[2]?.resume(),
      // Requests whose keys are on the other nodes work.
      ...blink,
      times: 8,
      oldTag: ['412 006', '200 tagged', '503 resource-busy', tagStore],
    },
  ];
  return { shopward: await start(shop, settings), rows, close: cluster.close };
}

/** Faults of Redis's clock, which stays as a fault has set it. */
async function openShifted(shop: OutageShop, redis: ShiftedRedis): Promise<Stage> {
  await ageRedis(redis.process?.port ?? 0);
  const setClock = (hours: number) => ({ begin: () => redis.setClock(hours * 3600), end: () => {} });
  const unnoticed = {
    seen: '200',
    // A read that began by the old clock gets no tag; the next one does.
    but: { ...healthy, 'tracked GET': ['200', '200 tagged'] },
    oldTag: '412 006',
  } as const;
  const rows: readonly FaultRow[] = [
    // Tags have no age. A claim at this moment loses its protection (SECURITY.md).
    {
      name: 'its clock is set an hour forward',
      ...setClock(1),
      ...unnoticed,
      // A claim on its way is an hour late and is refused; the next one uses the new time.
      but: {
        ...unnoticed.but,
        'tagged PATCH': ['200 tagged', tagStore],
        'child POST': ['201 tagged', tagStore],
      },
      oldTag: ['412 006', '200 tagged', tagStore],
    },
    { name: 'its clock is set back by half an hour', ...setClock(1 / 2), ...unnoticed },
    {
      name: 'its clock is set to before its start',
      ...setClock(-2),
      ...away,
      // As with a new store.
      but: { ...away.but, 'token exchange': '201' },
      ...unavailable,
    },
  ];
  return { shopward: await start(shop, shopwardSettings(redis.url)), rows, close: redis.close };
}

function start(shop: OutageShop, config: object): Promise<RunningShopward> {
  return startShopwardHere({ upstream: `http://127.0.0.1:${shop.port}`, config });
}

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from './free-port.ts';
import { type RedisProcess, type RedisProcessOptions, startRedisProcess } from './redis-server.ts';

export type SingleRedis = Awaited<ReturnType<typeof startRedis>>;
export type RedisCluster = Awaited<ReturnType<typeof startCluster>>;
export type RedisSentinel = Awaited<ReturnType<typeof startSentinel>>;

/**
 * Starts a Redis for the test; `url` is a value for `store.url`. If `REDIS_URL` is set and there are no options: uses that
 * one, which we must not stop, so that `process` is undefined.
 */
export async function startRedis(options?: RedisProcessOptions) {
  const given = options === undefined && process.env.REDIS_URL;
  const server = given ? undefined : await startRedisProcess(options);
  const scheme = options?.tls === true ? 'rediss' : 'redis';
  const url = given || `${scheme}://127.0.0.1:${server?.port}`;
  return { url, process: server, close: async () => server?.close() };
}

/** A Cluster of primaries that share all 16384 slots evenly; no replicas. */
export async function startCluster(size = 3) {
  const nodes = await Promise.all(
    Array.from({ length: size }, async () =>
      startRedisProcess({
        settings: {
          'cluster-enabled': 'yes',
          'cluster-port': await freePort(),
          // Longer than any test stops a node: without replicas, a failed node would stop the whole Cluster.
          'cluster-node-timeout': 30_000,
          'cluster-config-file': 'nodes.conf',
        },
      }),
    ),
  );
  const clients = nodes.map((node) => client(node.port));
  try {
    await Promise.all(clients.map((each, i) => each.call('CLUSTER', 'ADDSLOTSRANGE', ...slots(i, size))));
    const [first] = nodes;
    for (const [i, each] of clients.entries()) {
      if (i > 0 && first !== undefined) await meet(each, first);
    }
    for (const each of clients) {
      await until(async () => {
        const info = String(await each.call('CLUSTER', 'INFO'));
        return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${size}`);
      });
    }
  } finally {
    for (const each of clients) each.disconnect();
  }
  return {
    url: `redis+cluster://${nodes.map((node) => `127.0.0.1:${node.port}`).join(',')}`,
    nodes,
    close: () => closeAll(nodes),
  };
}

/** One Sentinel (quorum 1) over a primary and replicas. */
export async function startSentinel({ replicas = 1 } = {}) {
  const name = 'shop';
  // A promoted replica must not keep an old primary's data through a partial copy, for which tests would wait.
  const settings = { 'repl-ping-replica-period': 1 };
  const primary = await startRedisProcess({ settings });
  const others = await Promise.all(
    Array.from({ length: replicas }, () =>
      startRedisProcess({ settings: { ...settings, replicaof: `127.0.0.1 ${primary.port}` } }),
    ),
  );
  /** In the order of their start. The primary may change. */
  const servers = [primary, ...others];
  await untilReplicated(primary, replicas);
  const sentinel = await startRedisProcess({
    sentinel: true,
    configFile: (directory, port) => sentinelFile({ directory, port, name, primaryPort: primary.port }),
  });
  // Sentinel checks ten times as often. An older Sentinel lacks this command and is only slower.
  await ask(sentinel.port, 'SENTINEL', 'DEBUG', 'INFO-PERIOD', '500', 'PUBLISH-PERIOD', '200').catch(
    () => {},
  );
  const primaryPort = () => askPrimary(sentinel, name);
  const findPrimary = async () => {
    const port = await primaryPort();
    return servers.find((server) => server.port === port) ?? primary;
  };
  /** Waits until a server other than `before` is the primary (after its kill or pause). */
  const awaitNewPrimary = async (before: RedisProcess) => {
    await until(async () => {
      const port = await primaryPort();
      return port !== before.port && (await role(port)) === 'master';
    });
    return findPrimary();
  };
  await until(async () => (await knownReplicas(sentinel, name)) === replicas);
  return {
    url: `redis+sentinel://127.0.0.1:${sentinel.port}/${name}`,
    name,
    sentinel,
    servers,
    primary: findPrimary,
    awaitNewPrimary,
    /** Asks the Sentinel for a failover and waits until another server is the primary and accepts writes. */
    async failover() {
      const before = await findPrimary();
      // Refused while the Sentinel knows no usable replica. It gives up a failover that takes too long.
      await until(async () => {
        const { port, flags } = toRecord(await ask(sentinel.port, 'SENTINEL', 'MASTER', name));
        if (Number(port) !== before.port) return true;
        if (flags === 'master') await ask(sentinel.port, 'SENTINEL', 'FAILOVER', name);
        return false;
      });
      await awaitNewPrimary(before);
      await until(() => isConcluded(sentinel, name));
    },
    close: () => closeAll([sentinel, ...servers]),
  };
}

/**
 * Sentinel pings each `down-after-milliseconds`, or each second if that is shorter. With less than a second it calls
 * the new primary down before its first answer: one lost primary caused four failovers.
 */
const downAfterMs = 1_500;

function sentinelFile(at: { directory: string; port: number; name: string; primaryPort: number }): string {
  const file = join(at.directory, 'sentinel.conf');
  writeFileSync(
    file,
    [
      `port ${at.port}`,
      'bind 127.0.0.1',
      `dir ${at.directory}`,
      `sentinel monitor ${at.name} 127.0.0.1 ${at.primaryPort} 1`,
      `sentinel down-after-milliseconds ${at.name} ${downAfterMs}`,
      `sentinel failover-timeout ${at.name} 2000`,
      '',
    ].join('\n'),
  );
  return file;
}

function client(port: number): Redis {
  const connected = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 1, commandTimeout: 10_000 });
  connected.on('error', () => {});
  return connected;
}

async function ask(port: number, ...words: [string, ...string[]]): Promise<unknown> {
  const asked = client(port);
  try {
    return await asked.call(...words);
  } finally {
    asked.disconnect();
  }
}

async function meet(from: Redis, other: RedisProcess): Promise<void> {
  const busPort = String(await ask(other.port, 'CONFIG', 'GET', 'cluster-port')).split(',')[1] ?? '';
  await from.call('CLUSTER', 'MEET', '127.0.0.1', String(other.port), busPort);
}

async function askPrimary(sentinel: RedisProcess, name: string): Promise<number> {
  const address = await ask(sentinel.port, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name);
  return Number(Array.isArray(address) ? address[1] : Number.NaN);
}

async function knownReplicas(sentinel: RedisProcess, name: string): Promise<number> {
  const replicas = await ask(sentinel.port, 'SENTINEL', 'REPLICAS', name);
  return Array.isArray(replicas) ? replicas.length : 0;
}

/** No failover is under way and every replica follows the primary: the next failover may begin. */
async function isConcluded(sentinel: RedisProcess, name: string): Promise<boolean> {
  const primary = toRecord(await ask(sentinel.port, 'SENTINEL', 'MASTER', name));
  const replicas = (await ask(sentinel.port, 'SENTINEL', 'REPLICAS', name)) as unknown[];
  return (
    primary.flags === 'master' &&
    replicas.map(toRecord).every((each) => each.flags === 'slave' && each['master-link-status'] === 'ok')
  );
}

function toRecord(reply: unknown): Record<string, unknown> {
  const flat = Array.isArray(reply) ? reply : [];
  return Object.fromEntries(flat.flatMap((name, i) => (i % 2 === 0 ? [[name, flat[i + 1]]] : [])));
}

async function role(port: number): Promise<unknown> {
  const answer = await ask(port, 'ROLE').catch(() => undefined);
  return Array.isArray(answer) ? answer[0] : undefined;
}

/** An online replica is not enough: WAIT does not count it until it has acknowledged a write. */
async function untilReplicated(primary: RedisProcess, replicas: number): Promise<void> {
  const writer = client(primary.port);
  await until(async () => {
    await writer.set('shopward-harness', '1');
    return (await writer.wait(replicas, 500)) === replicas;
  });
  await writer.del('shopward-harness');
  writer.disconnect();
}

function slots(index: number, size: number): [string, string] {
  const width = Math.floor(16384 / size);
  return [String(index * width), String(index === size - 1 ? 16383 : (index + 1) * width - 1)];
}

/** Polls until the answer is yes; an error counts as no. */
export async function until(isSo: () => Promise<boolean>, timeoutMs = 60_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await isSo().catch(() => false))) {
    if (Date.now() > deadline) throw new Error('waited in vain');
    await sleep(50);
  }
}

const closeAll = async (processes: readonly RedisProcess[]): Promise<void> =>
  void (await Promise.all(processes.map((each) => each.close())));

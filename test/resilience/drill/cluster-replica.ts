import { Redis } from 'ioredis';
import { freePort } from '../../harness/free-port.ts';
import { until } from '../../harness/redis-processes.ts';
import { type RedisProcess, startRedisProcess } from '../../harness/redis-server.ts';

export type ClusterReplica = Awaited<ReturnType<typeof addClusterReplica>>;

/** A replica of one node of a running Cluster, which can be promoted. */
export async function addClusterReplica(of: RedisProcess) {
  const busPort = await freePort();
  const server = await startRedisProcess({
    settings: {
      'cluster-enabled': 'yes',
      'cluster-port': busPort,
      'cluster-node-timeout': 30_000,
      'cluster-config-file': 'nodes.conf',
    },
  });
  const replica = new Redis(server.port, '127.0.0.1');
  const primary = new Redis(of.port, '127.0.0.1');
  const primaryId = String(await primary.call('CLUSTER', 'MYID'));
  await primary.call('CLUSTER', 'MEET', '127.0.0.1', String(server.port), String(busPort));
  await until(async () => (await replica.call('CLUSTER', 'REPLICATE', primaryId)) === 'OK');
  await until(async () => roleOf(await replica.call('ROLE')) === 'slave connected');
  primary.disconnect();
  return {
    /** Runs CLUSTER FAILOVER; resolves once the replica is the primary. */
    async promote() {
      await until(async () => (await replica.call('CLUSTER', 'FAILOVER')) === 'OK');
      await until(async () => roleOf(await replica.call('ROLE')).startsWith('master'));
    },
    async close() {
      replica.disconnect();
      await server.close();
    },
  };
}

function roleOf(reply: unknown): string {
  const [role, , , state] = Array.isArray(reply) ? reply : [];
  return `${role} ${state ?? ''}`;
}

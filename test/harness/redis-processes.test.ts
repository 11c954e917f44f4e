import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { closingAtEnd } from './closing-at-end.ts';
import { startCluster, startRedis, startSentinel } from './redis-processes.ts';

describe.concurrent('the Redis processes of the tests', () => {
  test('sentinel: a failover makes another server the primary', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await startSentinel());
    const before = await redis.primary();
    await redis.failover();
    expect((await redis.primary()).port).not.toBe(before.port);
  });

  test('single: a restart on the same port is empty', async (context) => {
    const open = closingAtEnd(context);
    const redis = open(await startRedis({}));
    const client = new Redis(redis.url);
    client.on('error', () => {});
    await client.set('a', '1');
    await redis.process?.restart();
    expect(await client.get('a')).toBeNull();
    client.disconnect();
  });

  test('cluster: every slot is served', async (context) => {
    const open = closingAtEnd(context);
    const { nodes } = open(await startCluster());
    const client = new Redis({ port: nodes[0]?.port ?? 0 });
    expect(String(await client.call('CLUSTER', 'INFO'))).toContain('cluster_slots_ok:16384');
    client.disconnect();
  });
});

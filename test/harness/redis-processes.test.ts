import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { startCluster, startRedis, startSentinel } from './redis-processes.ts';

const closing: Array<{ close(): Promise<void> }> = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((each) => each.close()));
});

function open<T extends { close(): Promise<void> }>(each: T): T {
  closing.push(each);
  return each;
}

describe('the Redis processes of the tests', () => {
  test('single: a restart on the same port is empty', async () => {
    const redis = open(await startRedis({}));
    const client = new Redis(redis.url);
    client.on('error', () => {});
    await client.set('a', '1');
    await redis.process?.restart();
    expect(await client.get('a')).toBeNull();
    client.disconnect();
  });

  test('cluster: every slot is served', async () => {
    const { nodes } = open(await startCluster());
    const client = new Redis({ port: nodes[0]?.port ?? 0 });
    expect(String(await client.call('CLUSTER', 'INFO'))).toContain('cluster_slots_ok:16384');
    client.disconnect();
  });

  test('sentinel: a failover makes another server the primary', async () => {
    const redis = open(await startSentinel());
    const before = await redis.primary();
    await redis.failover();
    expect((await redis.primary()).port).not.toBe(before.port);
  });
});

import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Redis } from '../../../src/redis/redis.ts';
import { startCluster, startRedis } from '../../harness/redis-processes.ts';
import { contract } from './store-contract.ts';
import { connect, redisSubject } from './stores.ts';

describe.each([
  { kind: 'single', start: () => startRedis() },
  { kind: 'cluster', start: () => startCluster() },
])('Redis, $kind', ({ start }) => {
  let connections: [Redis, Redis];
  const open: Array<{ close(): Promise<void> }> = [];
  beforeAll(async () => {
    const server = await start();
    open.push(server);
    connections = [await connect(server.url), await connect(server.url)];
    open.push(...connections);
  });
  afterAll(async () => {
    for (const each of open.reverse()) await each.close();
  });

  // New records for each promise, so that none changes another.
  test.each(Object.entries(contract))('%s', async (promise, check) =>
    check(redisSubject(connections, { keyPrefix: promise })),
  );
});

import { expect, it } from 'vitest';
import type { PooledConnection } from '../../../src/upstream/connection.ts';
import { ConnectionPool } from '../../../src/upstream/connection-pool.ts';

/** Timers for which this process would stay. */
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

it('the clock of a queue keeps no process, whether its waiter stays or leaves; who left hears nothing', async () => {
  let nowMs = 0;
  const heard: string[] = [];
  const waiter = (name: string) => ({
    onConnection: () => heard.push(`${name}: a connection`),
    onConnectionFault: ({ kind }: { readonly kind: string }) => heard.push(`${name}: ${kind}`),
  });
  const pool = new ConnectionPool<PooledConnection>(
    {
      upstream: { scheme: 'http', hostname: '127.0.0.1', port: 1 },
      connectTimeoutMs: 60_000,
      connections: 1,
      queueLimit: 10,
      queueTimeoutMs: 5,
    },
    (_opened, failed) => () => failed({ kind: 'unreachable', cause: undefined }),
    () => nowMs,
  );
  const before = timers();
  const [leaves, stays] = [waiter('leaves'), waiter('stays')];
  pool.acquire(leaves, 'any');
  pool.acquire(stays, 'any');
  expect(timers()).toBe(before);
  pool.leave(leaves);
  expect([timers(), pool.waiting]).toEqual([before, 1]);
  nowMs = 5;
  await expect.poll(() => heard).toEqual(['stays: connect-timeout']);
  await pool.close();
  expect(heard).toEqual(['stays: connect-timeout']);
});

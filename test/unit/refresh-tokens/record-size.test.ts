import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Redis } from '../../../src/redis/redis.ts';
import { newFamily } from '../../../src/refresh-tokens/issue.ts';
import { RedisTokenStore } from '../../../src/refresh-tokens/redis-store.ts';
import { type RedisProcess, startRedisProcess } from '../../harness/redis-server.ts';
import { newSubject, newToken } from './store-contract.ts';
import { connect } from './stores.ts';

/** The test of the sizes in docs/operations.md and `shopward check`. */
const lifetimeMs = 2_628_000_000;
const users = 3_000;
let server: RedisProcess;
let redis: Redis;

beforeAll(async () => {
  server = await startRedisProcess();
  redis = await connect(`redis://127.0.0.1:${server.port}`);
});
afterAll(async () => {
  await redis?.close();
  await server?.close();
});

test('a login needs less than 450 bytes in Redis, a refresh less than 360 more', async () => {
  const store = new RedisTokenStore({ redis, lifetimeMs, retentionMs: 'keep' });
  const logins = Array.from({ length: users }, () => ({
    subject: newSubject(),
    family: newFamily(),
    token: newToken(),
  }));
  const record = async ({ subject, family, token }: (typeof logins)[number]) => {
    const { generation } = await store.generationFor(subject, lifetimeMs);
    await store.record(token, { subject, generation, family, lifetimeMs });
  };
  const before = await usedBytes();
  await Promise.all(logins.map(record));
  const afterLogins = await usedBytes();
  await Promise.all(
    logins.map(async (login) => {
      await store.claim(login.token, 'op', 2000);
      await store.markUsed(login.token, { owner: null, family: login.family, answer: null });
      await record({ ...login, token: newToken() });
    }),
  );
  const [login, refresh] = [afterLogins - before, (await usedBytes()) - afterLogins];
  // With more users both are smaller, because the tables of Redis grow in steps.
  expect(login / users).toBeLessThan(450);
  expect(refresh / users).toBeLessThan(360);
});

async function usedBytes(): Promise<number> {
  const info = String(await redis.command('INFO', 'memory'));
  return Number(/^used_memory_dataset:(\d+)/m.exec(info)?.[1]);
}

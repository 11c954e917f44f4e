import { expect, it, onTestFinished } from 'vitest';
import { connectRedis } from '../../src/redis/connect-redis.ts';
import type { Redis } from '../../src/redis/redis.ts';
import { healthy, infoReply, slotsReply, startScriptedRedis } from './scripted-redis.ts';

interface Said {
  /** The answer to `INFO default`; by default that of a healthy server. ioredis itself asks by `INFO`. */
  facts?: () => string | undefined;
  timeoutMs?: number;
  kind?: 'redis' | 'redis+cluster';
}

async function connect(said: Said = {}): Promise<Redis> {
  const { facts, timeoutMs = 5_000, kind = 'redis' } = said;
  const { port }: { port: number } = await startScriptedRedis(([name = '', first]) => {
    if (/^info$/i.test(name)) return first === 'default' && facts ? facts() : infoReply(healthy);
    if (/^cluster$/i.test(name)) return slotsReply([port]);
    return '+OK\r\n';
  });
  const redis = connectRedis({ url: `${kind}://127.0.0.1:${port}`, timeoutMs });
  onTestFinished(() => redis.close());
  return redis;
}

/** The word of the fault of a call. */
const faultOf = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    (error) => error.word ?? String(error),
  );

it.each(['redis', 'redis+cluster'] as const)('%s is ready when its policy is known', async (kind) => {
  const redis = await connect({ kind });
  expect(await redis.ready(5_000)).toBe(true);
  expect(redis.status()).toMatchObject({ facts: { runIds: 'run-1' } });
});

it('is not ready before its policy is known', async () => {
  const asked = Promise.withResolvers<void>();
  const redis = await connect({ facts: () => void asked.resolve() });
  await asked.promise;
  expect(await redis.ready(20)).toBe(false);
});

it('that evicts records is not used, however it answers', async () => {
  const redis = await connect({ facts: () => infoReply({ ...healthy, maxmemory_policy: 'volatile-ttl' }) });
  expect(await faultOf(redis.ready(5_000))).toBe('evicting');
  expect(await faultOf(redis.command('PING'))).toBe('evicting');
});

it.each([
  ['-NOPERM this user has no permissions\r\n', 'noperm'],
  ["-ERR unknown command 'info'\r\n", 'error'],
])('that does not tell whether it evicts (%j) is not used', async (answer, word) => {
  const redis = await connect({ facts: () => answer });
  expect(await redis.ready(5_000)).toBe(false);
  expect(await faultOf(redis.command('PING'))).toBe(word);
});

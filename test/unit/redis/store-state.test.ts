import { globSync, readFileSync } from 'node:fs';
import { Redis as RawClient } from 'ioredis';
import { afterAll, beforeAll, describe, expect, type TestContext, test, vi } from 'vitest';
import { type ConnectRedisOptions, connectRedis } from '../../../src/redis/connect-redis.ts';
import { causeOf as faultCause } from '../../../src/redis/faults.ts';
import { defineClaim, defineScript, type Redis } from '../../../src/redis/redis.ts';
import type { HealthLine } from '../../../src/redis/store-health.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { freePort } from '../../harness/free-port.ts';
import { startRedis, until } from '../../harness/redis-processes.ts';

/** The intervals of all connections are driven by hand. At each one a connection asks the server for its state. */
beforeAll(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterAll(() => void vi.useRealTimers());

function opening(context: TestContext) {
  const open = closingAtEnd(context);
  let passedMs = 0;
  function connect(url: string, more: Partial<ConnectRedisOptions> = {}) {
    const lines: { about: string; line: HealthLine }[] = [];
    const redis = open(
      connectRedis({
        url,
        timeoutMs: 20_000,
        onLine: (about, line) => void lines.push({ about, line }),
        now: () => Date.now() + passedMs,
        ...more,
      }),
    );
    return { redis, lines };
  }
  /** Repeats `isSo` until it is true. For the connections, a second passes with each attempt. */
  const pingUntil = (isSo: () => Promise<boolean>) =>
    until(async () => {
      passedMs += 1000;
      vi.advanceTimersByTime(1000);
      return isSo();
    });
  function direct(url: string): RawClient {
    const client = new RawClient(url, { retryStrategy: () => 50 });
    client.on('error', () => {});
    open({ close: async () => client.disconnect() });
    return client;
  }
  return { open, connect, direct, pingUntil };
}

const word = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    (fault) => fault.word,
  );

const causeOf = (redis: Redis) => redis.state().cause?.text;

// First, because Redis takes some seconds to notice that a replica is silent.
describe.concurrent('the server of the store', () => {
  test('a paused replica: "0 of 1 replicas confirm" without a claim, and 0 replicas for a claim', async (context) => {
    const { open, connect, pingUntil } = opening(context);
    const primary = open(await startRedis({}));
    const replica = open(await startRedis({ settings: { replicaof: `127.0.0.1 ${primary.process?.port}` } }));
    // For half of this time WAIT waits for the paused replica.
    const { redis, lines } = connect(primary.url, { replicas: 1, timeoutMs: 6000 });
    const take = defineClaim('take', "return redis.call('INCR', KEYS[1])");
    await pingUntil(async () => (await redis.runClaim(take, ['k'], [], 1)).replicas === 1);
    await pingUntil(async () => redis.status().replication?.status === 'ready');
    replica.process?.pause();
    await pingUntil(async () => redis.status().replication?.status === 'away');
    expect(redis.status().replication?.cause?.text).toBe('0 of 1 replicas confirm');
    replica.process?.resume();
    await pingUntil(async () => redis.status().replication?.status === 'ready');
    const told = lines.filter(({ about }) => about === 'replicas').map(({ line }) => line.status);
    expect(told.slice(-2)).toEqual(['away', 'ready']);
    await pingUntil(async () => (await redis.runClaim(take, ['k'], [], 1)).replicas === 1);
    replica.process?.pause();
    expect((await redis.runClaim(take, ['k'], [], 1)).replicas).toBe(0);
    expect(redis.status().claims).toMatchObject({ lastConfirmed: 0 });
    replica.process?.resume();
  });
});

describe.concurrent('an eviction policy that evicts records', () => {
  const policies = [
    'allkeys-lru',
    'allkeys-lfu',
    'allkeys-random',
    'volatile-lru',
    'volatile-lfu',
    'volatile-random',
    'volatile-ttl',
  ];

  test.for(policies)('%s is refused at the start and when it is set later', async (policy, context) => {
    const { open, connect, direct, pingUntil } = opening(context);
    const server = open(await startRedis({ settings: { 'maxmemory-policy': policy } }));
    const admin = direct(server.url);
    const { redis } = connect(server.url);
    await expect(redis.ready(20_000)).rejects.toMatchObject({ word: 'evicting' });
    expect(await word(redis.command('PING'))).toBe('evicting');
    await admin.config('SET', 'maxmemory-policy', 'noeviction');
    await pingUntil(async () => (await redis.command('PING')) === 'PONG');
    await admin.config('SET', 'maxmemory-policy', policy);
    await pingUntil(async () => (await word(redis.command('PING'))) === 'evicting');
    await pingUntil(async () => causeOf(redis) === `maxmemory-policy ${policy}`);
  });
});

describe.concurrent('rights of the user of Redis', () => {
  const setUser = (client: RawClient, ...rules: string[]) =>
    client.call('ACL', 'SETUSER', 'shop', 'on', '>sesame', '&shop:*', ...rules);

  test.for([
    ['-info', /^NOPERM info: grant \+info/],
    ['-hset', /^NOPERM.*: grant .*(?:\+hset|\+@write)/],
    ['-evalsha', /^NOPERM evalsha: grant \+evalsha/],
    ['resetkeys', /^NOPERM: grant ~PREFIX:\*/],
  ] as const)('the first call that needs a missing one names it: %s', async ([rule, text], context) => {
    const { open, connect, direct } = opening(context);
    const server = open(await startRedis({}));
    await setUser(direct(server.url), '~shop:*', '+@all', rule);
    const { redis } = connect(server.url.replace('//', '//shop:sesame@'));
    await redis.ready(20_000);
    const script = defineScript('writes', `return redis.call('HSET', KEYS[1], 'f', 'v')`);
    const fault = await redis.runScript(script, ['shop:key'], []).catch((error: unknown) => error);
    const cause = causeOf(redis) ?? faultCause(fault).text ?? '';
    expect(cause).toMatch(text);
  });

  test('those of docs/redis.md allow every command of the source', async (context) => {
    const { open, direct } = opening(context);
    const client = direct(open(await startRedis({})).url);
    await setUser(client, '~shop:*', '-@all', ...granted);
    const sources = globSync('src/**/*.ts').map((file) => readFileSync(file, 'utf8'));
    const used = sources.flatMap((text) =>
      [...text.matchAll(/(?:redis\.p?call|\.command)\('([A-Z]+)'/g)].map(([, name = '']) => name),
    );
    expect(used.length).toBeGreaterThan(50);
    for (const name of new Set([...used, 'INFO', 'TIME', 'WAIT', 'EVAL', 'EVALSHA'])) {
      expect(await mayRun(client, name), name).toBe(true);
    }
    expect(await mayRun(client, 'SHUTDOWN')).toBe(false);
  });
});

const granted = '+@read +@write +@connection +@scripting +info +time +wait'.split(' ');

/** Tries up to five arguments, because Redis checks their number first. */
async function mayRun(client: RawClient, name: string): Promise<boolean> {
  for (let count = 0; count < 6; count += 1) {
    const args = Array.from({ length: count }, () => 'shop:1');
    const answer = await client.call('ACL', 'DRYRUN', 'shop', name, ...args).catch(String);
    if (answer === 'OK') return true;
    if (!String(answer).includes('number of arguments')) return false;
  }
  return false;
}

describe.concurrent('the cause of an unavailable Redis', () => {
  test('refused connection, unknown host, missing password, wrong password', async (context) => {
    const { open, connect, pingUntil } = opening(context);
    const port = await freePort();
    const server = open(await startRedis({ settings: { requirepass: 'sesame' } }));
    for (const [url, cause] of [
      [`redis://127.0.0.1:${port}`, `ECONNREFUSED 127.0.0.1:${port}`],
      ['redis://missing.invalid', 'ENOTFOUND missing.invalid'],
      [`redis+sentinel://127.0.0.1:${port}/shop`, /ECONNREFUSED/],
      [`redis+cluster://127.0.0.1:${port}`, /ECONNREFUSED/],
      [server.url, 'NOAUTH'],
      [server.url.replace('//', '//:wrong@'), 'WRONGPASS'],
    ] as const) {
      const { redis } = connect(url);
      await pingUntil(async () =>
        typeof cause === 'string' ? causeOf(redis) === cause : cause.test(causeOf(redis) ?? ''),
      );
      expect(redis.state().status).toBe('away');
    }
  });
});

// Not concurrent, because the fake timers are shared.
test('the newest cause counts: first a changed password, then a killed server', async (context) => {
  const { open, connect, direct } = opening(context);
  const server = open(await startRedis({ settings: { requirepass: 'sesame' } }));
  const admin = direct(server.url.replace('//', '//:sesame@'));
  const { redis, lines } = connect(server.url.replace('//', '//:sesame@'));
  await until(async () => redis.state().status === 'ready');
  await admin.config('SET', 'requirepass', 'other');
  await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await until(async () => causeOf(redis) === 'WRONGPASS');
  await server.process?.kill();
  await until(async () => causeOf(redis)?.startsWith('ECONNREFUSED') === true);
  const told = lines.map(({ line }) => `${line.status} ${line.cause?.text?.split(' ')[0] ?? ''}`.trim());
  // The kill may also break an attempt to connect, which is a cause of its own.
  expect([...told.slice(0, 2), told.at(-1)]).toEqual(['ready', 'away WRONGPASS', 'away ECONNREFUSED']);
});

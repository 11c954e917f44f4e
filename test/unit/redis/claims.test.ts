import { setTimeout as sleep } from 'node:timers/promises';
import { Redis as RawClient } from 'ioredis';
import { describe, expect, type TestContext, test } from 'vitest';
import { connectRedis } from '../../../src/redis/connect-redis.ts';
import { mayTakeEffectAfter, RedisUnavailable } from '../../../src/redis/faults.ts';
import { defineClaim, defineScript, type Redis } from '../../../src/redis/redis.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { startCluster, startRedis, until } from '../../harness/redis-processes.ts';
import type { RedisProcess } from '../../harness/redis-server.ts';
import { startShiftedRedis } from '../../resilience/faults/shifted-redis.ts';

/** The deadline in tests in which many claims time out. Other claims get more time, because the machine may be busy. */
const timeoutMs = 500;
const patientMs = 20_000;
/** The deadline in tests that wait for it, in which other claims are answered long before it. */
const longMs = 6000;

/** Like the scripts of the features: a claim on a key, and its release. */
const take = defineClaim('take', "return redis.call('SET', KEYS[1], ARGV[1], 'NX') and 'granted' or 'busy'");
const giveBack = defineScript(
  'give-back',
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
);

const calls = async (client: RawClient, command: string) =>
  Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(await client.info('commandstats'))?.[1] ?? 0);

function opening(context: TestContext) {
  const open = closingAtEnd(context);
  async function connect(url: string, ms = patientMs): Promise<Redis> {
    const redis = open(connectRedis({ url, timeoutMs: ms }));
    await until(async () => redis.ready(1000));
    return redis;
  }
  async function raw({ port }: Pick<RedisProcess, 'port'>): Promise<RawClient> {
    const client = new RawClient({ port, host: '127.0.0.1', retryStrategy: () => 50 });
    client.on('error', () => {});
    open({ close: async () => client.disconnect() });
    return client;
  }
  /** Every command that the server gets from now on, with its arguments. */
  async function watch({ port }: Pick<RedisProcess, 'port'>): Promise<readonly (readonly string[])[]> {
    const sent: string[][] = [];
    const monitor = await (await raw({ port })).monitor();
    open({ close: async () => monitor.disconnect() });
    monitor.on('monitor', (_time: string, parts: string[]) => sent.push(parts));
    return sent;
  }
  /** A primary and its replicas, without Sentinel. */
  async function startReplicated(replicas: number) {
    const settings = { 'repl-ping-replica-period': 1 };
    const primary = open(await startRedis({ settings }));
    const port = primary.process?.port ?? 0;
    const others = await Promise.all(
      Array.from({ length: replicas }, () =>
        startRedis({ settings: { ...settings, replicaof: `127.0.0.1 ${port}` } }),
      ),
    );
    for (const each of others) open(each);
    const direct = await raw({ port });
    await until(async () => {
      await direct.set('warm', '1');
      return (await direct.wait(replicas, 500)) === replicas;
    });
    await direct.del('warm');
    return {
      url: primary.url,
      primary,
      direct,
      replicas: others.map(({ process }) => process as RedisProcess),
    };
  }
  return { open, connect, raw, watch, startReplicated };
}

/** Like a feature: releases a claim whose outcome is uncertain, as soon as that is allowed. */
async function takeOrGiveBack(redis: Redis, key: string, token: string, replicas: number): Promise<string> {
  try {
    const { reply, replicas: confirmed } = await redis.runClaim(take, [key], [token], replicas);
    if (confirmed >= replicas) return String(reply);
    await redis.runScript(giveBack, [key], [token]);
    return 'not-replicated';
  } catch (fault) {
    if (!(fault instanceof RedisUnavailable)) throw fault;
    // Like the features: the release is not awaited and may fail.
    if (await mayTakeEffectAfter(fault)) redis.runScript(giveBack, [key], [token]).catch(() => {});
    return fault.word;
  }
}

/** Claims until one is granted, before the test breaks something. */
async function untilGranted(redis: Redis, replicas: number): Promise<void> {
  const claim = () => takeOrGiveBack(redis, `first:${Math.random()}`, 'x', replicas).catch(() => '');
  await until(async () => (await claim()) === 'granted');
}

describe.concurrent('the clock of Redis is set', () => {
  test('forward: the first claim times out, the next one is granted; back: granted at once', async (context) => {
    const { open, connect } = opening(context);
    const server = await startShiftedRedis();
    if (server === undefined) return;
    open(server);
    const replica = { replicaof: `127.0.0.1 ${server.process?.port}` };
    open(await startRedis({ settings: replica }));
    const redis = await connect(server.url);
    await until(async () => (await takeOrGiveBack(redis, `${Math.random()}`, 'x', 1)) === 'granted');
    expect(await takeOrGiveBack(redis, 'a', 'x', 0)).toBe('granted');
    server.setClock(3600);
    // Each of the two connections learns the clock by itself.
    for (const replicas of [0, 1]) {
      expect(await takeOrGiveBack(redis, `b${replicas}`, 'x', replicas)).toBe('timeout');
      expect(await takeOrGiveBack(redis, `b${replicas}`, 'y', replicas)).toBe('granted');
    }
    server.setClock(-3600);
    expect(await takeOrGiveBack(redis, 'e', 'x', 0)).toBe('granted');
  });
});

describe.concurrent('a claim takes no effect after its caller has got an answer', () => {
  test('with a paused replica: of 56 claims none takes effect after its release', async (context) => {
    const { connect, startReplicated } = opening(context);
    const { url, replicas, direct } = await startReplicated(1);
    const redis = await connect(url, timeoutMs);
    await untilGranted(redis, 1);
    // The release leaves a mark. A claim that finds the mark came too late and is counted.
    const claim = defineClaim(
      'claim',
      `if redis.call('EXISTS', 'given:' .. KEYS[1]) == 1 then redis.call('INCR', 'overtaken') end
       return redis.call('SET', KEYS[1], ARGV[1], 'NX') and 'granted' or 'busy'`,
    );
    const give = defineScript(
      'give',
      "redis.call('SET', 'given:' .. KEYS[1], '1') return redis.call('DEL', KEYS[1])",
    );
    const giveBackFor = (key: string) =>
      redis.runScript(give, [key], [key]).then(
        () => 'given',
        () => 'lost',
      );
    replicas[0]?.pause();
    const ends: string[] = [];
    for (let round = 0; round < 7; round += 1) {
      const keys = Array.from({ length: 8 }, (_, user) => `lock:${round}:${user}`);
      await Promise.all(
        keys.map(async (key) => {
          const asked = redis.runClaim(claim, [key], [key], 1);
          const fault = await asked.then(
            // The replica is paused, so it confirms nothing.
            ({ replicas: confirmed }) => expect(confirmed).toBe(0),
            (error: unknown) => error,
          );
          if (fault instanceof RedisUnavailable && !(await mayTakeEffectAfter(fault)))
            ends.push('never waited');
          else ends.push(await giveBackFor(key));
        }),
      );
    }
    replicas[0]?.resume();
    // After this claim, everything that was in buffers has been read.
    await untilGranted(redis, 1);
    expect(ends).toHaveLength(56);
    expect(ends).toContain('given');
    expect(await direct.get('overtaken')).toBeNull();
    // Only keys whose release was lost may be left. In a feature their lease ends them.
    const lost = ends.filter((end) => end === 'lost').length;
    expect((await direct.keys('lock:*')).length).toBeLessThanOrEqual(lost);
  });

  test.for([0, 1])(
    'with a paused Redis (replicas: %i): 56 claims time out and take no effect later',
    async (count, context) => {
      const { connect, startReplicated } = opening(context);
      const { url, primary, direct } = await startReplicated(count);
      const redis = await connect(url, timeoutMs);
      await untilGranted(redis, count);
      primary.process?.pause();
      // No claim is released, so only the deadline can refuse it.
      const faults = await Promise.all(
        Array.from({ length: 56 }, (_, i) =>
          redis.runClaim(take, [`lock:${i}`], ['x'], count).catch((fault: unknown) => fault),
        ),
      );
      expect(new Set(faults.map((fault) => (fault as RedisUnavailable).word))).toEqual(new Set(['timeout']));
      primary.process?.resume();
      await until(async () => (await redis.command('PING')) === 'PONG');
      expect(await direct.keys('lock:*')).toEqual([]);
    },
  );

  test('after a broken connection, mayTakeEffectAfter waits until the claim can no longer take effect', async (context) => {
    const { open, connect, raw } = opening(context);
    const server = open(await startRedis({}));
    const proxy = open(await startFaultProxy(server.process?.port ?? 0));
    const redis = await connect(`redis://127.0.0.1:${proxy.port}`, longMs);
    const direct = await raw(server.process as RedisProcess);
    await untilGranted(redis, 0);
    await proxy.set({ toClient: { drop: true } });
    const startedMs = performance.now();
    const call = redis.runClaim(take, ['lock'], ['x'], 0).catch((fault: unknown) => fault);
    await until(async () => (await direct.exists('lock')) === 1);
    await proxy.heal();
    const fault = (await call) as RedisUnavailable;
    expect(fault.mayTakeEffectUntilMs).toBeGreaterThanOrEqual(startedMs + longMs);
    expect(await mayTakeEffectAfter(fault)).toBe(true);
    expect(performance.now()).toBeGreaterThanOrEqual(fault.mayTakeEffectUntilMs ?? Number.POSITIVE_INFINITY);
  });

  test('after the deadline nothing is sent: neither on a connection that is being made, nor as EVAL after NOSCRIPT', async (context) => {
    const { open, connect, raw, watch } = opening(context);
    const server = open(await startRedis({}));
    const direct = await raw(server.process as RedisProcess);
    const proxy = open(await startFaultProxy(server.process?.port ?? 0));
    // A silent connection is kept for twice this time, which no pause of the machine outlasts.
    const deadlineMs = 4 * timeoutMs;
    const redis = await connect(`redis://127.0.0.1:${proxy.port}`, deadlineMs);
    await until(async () => (await redis.command('PING')) === 'PONG');

    // Claims with replicas have their own connection, which hangs.
    await proxy.set({ connections: 'hang' });
    const fault = await redis.runClaim(take, ['lock'], ['x'], 1).catch((error: unknown) => error);
    expect(fault).toMatchObject({ mayTakeEffectUntilMs: undefined });
    await proxy.heal();

    // Redis does not know the digests, and its answers come after the deadlines.
    await untilGranted(redis, 0);
    await direct.script('FLUSH');
    const sent = await watch(server.process as RedisProcess);
    const lateMs = 200;
    await proxy.set({ toClient: { delayMs: deadlineMs + lateMs } });
    const wordOf = (error: RedisUnavailable) => error.word;
    const asked = [redis.runClaim(take, ['lock'], ['x'], 0), redis.runScript(giveBack, ['lock'], ['x'])];
    expect(await Promise.all(asked.map((each) => each.catch(wordOf)))).toEqual(['timeout', 'timeout']);
    await sleep(2 * lateMs);
    await direct.echo('the end');
    await until(async () => sent.some(([name, text]) => name === 'echo' && text === 'the end'));
    const onLock = sent.filter(([, , , key]) => key === 'lock').map(([name = '']) => name.toLowerCase());
    expect(onLock).toEqual(['evalsha', 'evalsha']);
    expect(await direct.exists('lock')).toBe(0);
  });

  test('a Cluster with a paused node: claims of its slots time out, the others are granted', async (context) => {
    const { open, connect } = opening(context);
    const cluster = open(await startCluster());
    const redis = await connect(cluster.url, longMs);
    const keys = Array.from({ length: 30 }, (_, i) => `lock:{${i}}`);
    for (const key of keys) {
      await until(async () => (await takeOrGiveBack(redis, key, 'x', 0)) !== 'connection');
      await redis.runScript(giveBack, [key], ['x']);
    }
    cluster.nodes[0]?.pause();
    const words = await Promise.all(keys.map((key) => takeOrGiveBack(redis, key, 'x', 0)));
    expect(new Set(words)).toEqual(new Set(['granted', 'timeout']));
    cluster.nodes[0]?.resume();
    // Each key by itself: waiting for a slow one must not repeat the claims of the others.
    for (const [i, key] of keys.entries()) {
      const wanted = words[i] === 'granted' ? 'busy' : 'granted';
      await until(async () => (await takeOrGiveBack(redis, key, 'y', 0)) === wanted);
    }
  });
});

describe.concurrent('WAIT', () => {
  test('32 claims at a time: at most two WAIT', async (context) => {
    const { connect, startReplicated } = opening(context);
    const { url, direct } = await startReplicated(1);
    const redis = await connect(url);
    await takeOrGiveBack(redis, 'first', 'x', 1);
    const before = await calls(direct, 'wait');
    const keys = Array.from({ length: 32 }, (_, i) => `lock:${i}`);
    const words = await Promise.all(keys.map((key) => takeOrGiveBack(redis, key, 'x', 1)));
    expect(new Set(words)).toEqual(new Set(['granted']));
    expect((await calls(direct, 'wait')) - before).toBeLessThanOrEqual(2);
  });

  test('with one of two replicas paused a claim reports 1, and 2 after it resumes', async (context) => {
    const { connect, startReplicated } = opening(context);
    const { url, replicas } = await startReplicated(2);
    const redis = await connect(url, longMs);
    await until(async () => (await redis.runClaim(take, ['a'], ['x'], 2)).replicas === 2);
    replicas[1]?.pause();
    expect(await redis.runClaim(take, ['b'], ['x'], 2)).toEqual({ reply: 'granted', replicas: 1 });
    expect(await redis.runClaim(take, ['c'], ['x'], 1)).toEqual({ reply: 'granted', replicas: 1 });
    // WAIT waits: a replica that resumes in time still confirms.
    const asked = redis.runClaim(take, ['d'], ['x'], 2);
    setTimeout(() => replicas[1]?.resume(), 50);
    expect(await asked).toEqual({ reply: 'granted', replicas: 2 });
  });
});

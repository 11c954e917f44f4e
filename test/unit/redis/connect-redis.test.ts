import { createConnection, createServer } from 'node:net';
import { Redis as RedisClient } from 'ioredis';
import { describe, expect, type TestContext, test } from 'vitest';
import { type ConnectRedisOptions, connectRedis } from '../../../src/redis/connect-redis.ts';
import { defineClaim, defineScript, type Redis } from '../../../src/redis/redis.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startFaultProxy } from '../../harness/fault-proxy.ts';
import { freePort } from '../../harness/free-port.ts';
import { listen } from '../../harness/listen.ts';
import { startCluster, startRedis, startSentinel, until } from '../../harness/redis-processes.ts';

/** The deadline in tests that are not about it: failures come long before. */
const patientMs = 20_000;
interface Connecting {
  readonly timeoutMs?: number;
  readonly onLine?: ConnectRedisOptions['onLine'];
}

function opening(context: TestContext) {
  const open = closingAtEnd(context);
  let skippedMs = 0;
  const start = (
    url: string,
    { timeoutMs = patientMs, onLine }: Connecting = {},
  ): ReturnType<typeof connectRedis> =>
    open(connectRedis({ url, timeoutMs, ...(onLine && { onLine }), now: () => Date.now() + skippedMs }));
  async function connect(url: string, more?: Connecting): Promise<ReturnType<typeof connectRedis>> {
    const redis = start(url, more);
    await until(async () => redis.ready(1000));
    return redis;
  }
  /** Waits until Redis works and is `ready`. It stays `away` for ten seconds first; the clock skips them. */
  async function untilBack(redis: Redis): Promise<void> {
    await until(async () => (await redis.command('PING')) === 'PONG');
    expect(redis.state().status).toBe('away');
    skippedMs += 10_000;
    await until(async () => redis.state().status === 'ready');
  }
  return { open, start, connect, untilBack };
}

/** The word of the fault: `timeout` if the deadline ended the call. */
function fault(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'none',
    (error) => error.word ?? `other: ${error}`,
  );
}

const setAndGet = "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])";
const echo = defineScript('echo', setAndGet);
const claimEcho = defineClaim('claim-echo', setAndGet);

// First, because a Sentinel is slow and the other tests run at the same time.
describe.concurrent('a Sentinel', () => {
  test('writes succeed again after a failover and after the primary is paused', async (context) => {
    const { open, connect, untilBack } = opening(context);
    const group = open(await startSentinel({ replicas: 2 }));
    const redis = await connect(group.url, { timeoutMs: 1000 });
    const isSet = async (value: string) => (await redis.command('SET', 'a', value)) === 'OK';
    await until(() => isSet('1'));
    await until(async () => (await redis.runClaim(claimEcho, ['b'], ['1'], 2)).replicas === 2);
    await group.failover();
    await until(() => isSet('2'));
    const primary = await group.primary();
    primary.pause();
    // Five failures count as away, even if the next primary is elected quickly.
    await Promise.all(Array.from({ length: 5 }, () => fault(redis.command('PING'))));
    await group.awaitNewPrimary(primary);
    await until(() => isSet('3'));
    await untilBack(redis);
  });

  test('five connections work again after the primary is killed and restarted as a replica', async (context) => {
    const { open, connect } = opening(context);
    const group = open(await startSentinel());
    const all = await Promise.all(Array.from({ length: 5 }, () => connect(group.url, { timeoutMs: 1000 })));
    const works = async (redis: Redis) =>
      (await redis.runScript(echo, ['k'], ['1'])) === '1' &&
      (await redis.runClaim(claimEcho, ['k'], ['1'], 1)).replicas === 1;
    for (const redis of all) await until(() => works(redis));
    const before = await group.primary();
    await before.kill();
    await Promise.all([
      ...all.map((redis) => until(() => works(redis))),
      group.awaitNewPrimary(before).then(() => before.restart()),
    ]);
  });
});

describe.concurrent('a single Redis', () => {
  test('commands and scripts work, also after SCRIPT FLUSH', async (context) => {
    const { open, connect } = opening(context);
    const redis = await connect(open(await startRedis({})).url);
    expect(redis.kind).toBe('single');
    expect(await redis.command('SET', 'a', 'b')).toBe('OK');
    expect(await redis.runScript(echo, ['k'], ['1'])).toBe('1');
    await redis.command('SCRIPT', 'FLUSH');
    expect(await redis.runScript(echo, ['k'], ['2'])).toBe('2');
    await redis.command('SCRIPT', 'FLUSH');
    expect(await redis.runClaim(claimEcho, ['k'], ['3'], 0)).toEqual({ reply: '3', replicas: 0 });
  });

  test('down at the start: a call fails with connection, and works after Redis has started', async (context) => {
    const { open, start, untilBack } = opening(context);
    const port = await freePort();
    const redis = start(`redis://127.0.0.1:${port}`);
    expect(await redis.ready(100)).toBe(false);
    expect(await fault(redis.command('PING'))).toBe('connection');
    open(await startRedis({ port }));
    await untilBack(redis);
  });

  test('paused, resumed, killed, restarted: timeout, then connection; one change of state for each step', async (context) => {
    const { open, connect, untilBack } = opening(context);
    const server = open(await startRedis({}));
    const states: string[] = [];
    const redis = await connect(server.url, {
      timeoutMs: 3000,
      // A further line may name another cause of the same state.
      onLine: (_, { status, cause }) =>
        states.at(-1)?.startsWith(status) || states.push(`${status} ${cause?.word ?? ''}`.trim()),
    });
    server.process?.pause();
    const calls = [redis.command('INCR', 'n'), ...Array.from({ length: 20 }, () => redis.command('PING'))];
    expect(new Set(await Promise.all(calls.map(fault)))).toEqual(new Set(['timeout']));
    server.process?.resume();
    await untilBack(redis);
    await server.process?.kill();
    expect(await fault(redis.command('PING'))).toBe('connection');
    await until(async () => redis.state().status === 'away');
    await server.process?.restart();
    await untilBack(redis);
    expect(states).toEqual(['ready', 'away timeout', 'ready', 'away connection', 'ready']);
  });

  test('a call under way when the connection breaks fails at once and is never sent again', async (context) => {
    const { open, connect } = opening(context);
    const server = open(await startRedis({}));
    const proxy = open(await startFaultProxy(server.process?.port ?? 0));
    const redis = await connect(`redis://127.0.0.1:${proxy.port}`);
    const direct = await connect(server.url);
    // The command is executed, but its reply is lost.
    await proxy.set({ toClient: { drop: true } });
    const call = fault(redis.command('INCR', 'n'));
    await until(async () => (await direct.command('GET', 'n')) === '1');
    await proxy.heal();
    expect(await call).toBe('connection');
    await until(async () => (await redis.command('PING')) === 'PONG');
    expect(await redis.command('GET', 'n')).toBe('1');
  });

  test('the next connection uses changed credentials: single, Sentinel, Cluster', async (context) => {
    const { open, connect } = opening(context);
    const single = open(await startRedis({}));
    const [group, cluster] = [open(await startSentinel()), open(await startCluster())];
    for (const [url, ports] of [
      [single.url, [single.process?.port ?? 0]],
      [group.url, group.servers.map(({ port }) => port)],
      [cluster.url, cluster.nodes.map(({ port }) => port)],
    ] as const) {
      const redis = await connect(url);
      const whoAmI = async () => String(await redis.command('ACL', 'WHOAMI').catch(() => ''));
      await until(async () => (await whoAmI()) === 'default');
      redis.useCredentials({ username: 'app', password: 'new' });
      for (const port of ports) {
        const direct = new RedisClient(port, '127.0.0.1');
        await direct.call('ACL', 'SETUSER', 'app', 'on', '>new', '~*', '+@all');
        for (const line of String(await direct.call('CLIENT', 'LIST', 'TYPE', 'normal')).split('\n')) {
          const [, id] = /^id=(\d+) (?!.*name=sentinel)(?!.*cmd=client)/.exec(line) ?? [];
          if (id !== undefined) await direct.call('CLIENT', 'KILL', 'ID', id).catch(() => {});
        }
        direct.disconnect();
      }
      // In a Cluster any node may answer, so ask several times.
      for (let i = 0; i < 9; i++) await until(async () => (await whoAmI()) === 'app');
    }
  });

  test('a wrong type is a fault with the word error and does not count as away', async (context) => {
    const { open, connect } = opening(context);
    const redis = await connect(open(await startRedis({})).url);
    await redis.command('LPUSH', 'list', 'x');
    expect(await fault(redis.command('GET', 'list'))).toBe('error');
    expect(redis.state().status).toBe('ready');
  });

  test('an evicting policy is refused, even if INFO is answered after the deadline', async (context) => {
    const { open } = opening(context);
    const settings = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' };
    const server = open(await startRedis({ settings }));
    const relay = open(await startRelay(server.process?.port ?? 0));
    const redis = open(connectRedis({ url: `redis://127.0.0.1:${relay.port}`, timeoutMs: 100 }));
    await relay.asked;
    // Sent after the question, with the same deadline: when this call times out, so has the question.
    expect(await fault(redis.command('PING'))).toBe('timeout');
    relay.release();
    // `ready` is false if the connection was lost meanwhile.
    await until(async () => (await fault(redis.ready(patientMs))) === 'evicting');
  });
});

test('200 claims to a paused Redis cause no process warning', async (context) => {
  const { open, connect } = opening(context);
  const warnings: Error[] = [];
  const hear = (warning: Error) => warnings.push(warning);
  process.on('warning', hear);
  const server = open(await startRedis({}));
  const redis = await connect(server.url, { timeoutMs: 200 });
  await until(async () => (await redis.runClaim(claimEcho, ['k'], ['1'], 0)).reply === '1');
  // For longer than a silent connection is kept, so new connections are made, which stay silent too.
  server.process?.pause();
  for (let i = 0; i < 10; i += 1) {
    const calls = Array.from({ length: 20 }, () => fault(redis.runClaim(claimEcho, ['k'], ['1'], 0)));
    expect(new Set(await Promise.all(calls))).not.toContain('none');
  }
  server.process?.resume();
  await until(async () => (await redis.runClaim(claimEcho, ['k'], ['2'], 0)).reply === '2');
  process.off('warning', hear);
  expect(warnings).toEqual([]);
});

/** A relay to Redis that stops at the question for the eviction policy (`asked`) until `release`. */
async function startRelay(redisPort: number) {
  const asked = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const server = createServer((client) => {
    const upstream = createConnection({ port: redisPort, host: '127.0.0.1' });
    for (const socket of [client, upstream]) socket.on('error', () => {});
    upstream.pipe(client);
    client.on('close', () => upstream.destroy());
    let delaying = Promise.resolve();
    client.on('data', (chunk) => {
      if (chunk.includes('default')) {
        asked.resolve();
        delaying = released.promise;
      }
      void delaying.then(() => upstream.write(chunk));
    });
  });
  return { ...(await listen(server)), asked: asked.promise, release: released.resolve };
}

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis as RedisClient } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import { connectRedis } from '../../src/redis/connect-redis.ts';
import type { Redis, RedisState } from '../../src/redis/redis.ts';
import { defineScript } from '../../src/redis/script.ts';
import { startCluster, startRedis, startSentinel, until } from '../harness/redis-processes.ts';
import { freePort } from '../harness/redis-server.ts';

const timeoutMs = 200;
const slackMs = 800;
const closing: Array<{ close(): Promise<void> }> = [];
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

function open<T extends { close(): Promise<void> }>(each: T): T {
  closing.push(each);
  return each;
}

async function connect(url: string, onState?: (state: RedisState) => void): Promise<Redis> {
  const redis = open(connectRedis({ url, timeoutMs, ...(onState === undefined ? {} : { onState }) }));
  await until(async () => redis.ready(1000), 10_000);
  return redis;
}

/** The word of the fault, and that it came in time. */
async function fault(call: Promise<unknown>): Promise<string> {
  const started = performance.now();
  const word = await call.then(
    () => 'none',
    (error) => error.word ?? `other: ${error}`,
  );
  expect(performance.now() - started).toBeLessThan(timeoutMs + slackMs);
  return word;
}

const echo = defineScript('echo', "redis.call('SET', KEYS[1], ARGV[1]) return redis.call('GET', KEYS[1])");

describe('a single Redis', () => {
  test('commands and scripts, also after SCRIPT FLUSH', async () => {
    const redis = await connect(open(await startRedis({})).url);
    expect(redis.kind).toBe('single');
    expect(await redis.command('SET', 'a', 'b')).toBe('OK');
    expect(await redis.runScript(echo, ['k'], ['1'])).toBe('1');
    await redis.command('SCRIPT', 'FLUSH');
    expect(await redis.runScript(echo, ['k'], ['2'])).toBe('2');
    await redis.command('SCRIPT', 'FLUSH');
    expect(await redis.runScriptAndWait(echo, ['k'], ['3'], 0)).toEqual({ reply: '3', replicas: 0 });
  });

  test('down at the start: every call fails at once, and it recovers without a restart', async () => {
    const port = await freePort();
    const redis = open(connectRedis({ url: `redis://127.0.0.1:${port}`, timeoutMs }));
    expect(await redis.ready(100)).toBe(false);
    expect(await fault(redis.command('PING'))).toBe('connection');
    open(await startRedis({ port }));
    await until(async () => (await redis.command('PING')) === 'PONG', 5000);
    expect(redis.state().status).toBe('ready');
  });

  test('stopped, resumed, killed, restarted: bounded failures, one state change each', async () => {
    const server = open(await startRedis({}));
    const states: string[] = [];
    const redis = await connect(server.url, (state) =>
      states.push(`${state.status} ${state.word ?? ''}`.trim()),
    );
    server.process?.pause();
    expect(await fault(redis.command('INCR', 'n'))).toBe('timeout');
    await Promise.all(Array.from({ length: 20 }, () => fault(redis.command('PING'))));
    server.process?.resume();
    await until(async () => (await redis.command('PING')) === 'PONG', 5000);
    await server.process?.kill();
    expect(await fault(redis.command('PING'))).toBe('connection');
    await server.process?.restart();
    await until(async () => (await redis.command('PING')) === 'PONG', 5000);
    expect(states).toEqual(['ready', 'away timeout', 'ready', 'away connection', 'ready']);
  });

  test('a call under way when the connection breaks ends in time and is never sent again', async () => {
    const server = open(await startRedis({}));
    const redis = await connect(server.url);
    const other = new RedisClient(server.url);
    await other.set('n', '0');
    await other.call('CLIENT', 'PAUSE', '100', 'ALL');
    const call = fault(redis.command('INCR', 'n'));
    await other.call('CLIENT', 'KILL', 'TYPE', 'NORMAL');
    expect(await call).toMatch(/^(connection|timeout)$/);
    await until(async () => (await redis.command('PING')) === 'PONG', 5000);
    expect(Number(await redis.command('GET', 'n'))).toBeLessThanOrEqual(1);
    other.disconnect();
  });

  test.each([
    ['oom', ['SET', 'k', 'v'], { maxmemory: 1 }],
    ['readonly', ['SET', 'k', 'v'], { replicaof: '127.0.0.1 1' }],
    ['noreplicas', ['SET', 'k', 'v'], { 'min-replicas-to-write': 1 }],
  ] as const)('the reply behind the word %s', async (word, [name, ...args], settings) => {
    const redis = await connect(open(await startRedis({ settings })).url);
    expect(await fault(redis.command(name, ...args))).toBe(word);
    // A replica makes the client connect anew, since another server may be the primary by now.
    await until(async () => (await fault(redis.runScript(echo, ['k'], ['1']))) === word);
  });

  test('a missing and a wrong password', async () => {
    const server = open(await startRedis({ settings: { requirepass: 'sesame' } }));
    const right = await connect(server.url.replace('//', '//:sesame@'));
    expect(await right.command('PING')).toBe('PONG');
    for (const [url, word] of [
      [server.url, /noauth|connection/],
      [server.url.replace('//', '//:wrong@'), /wrongpass|connection/],
    ] as const) {
      const redis = open(connectRedis({ url, timeoutMs }));
      expect(await redis.ready(300)).toBe(false);
      expect(await fault(redis.command('PING'))).toMatch(word);
    }
  });

  test('TLS: a certificate of a CA that is named, and no other', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'shopward-tls-'));
    const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const making = [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-days',
      '2',
    ];
    execFileSync('openssl', [...making, '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
    const settings = {
      'tls-cert-file': cert,
      'tls-key-file': key,
      'tls-ca-cert-file': cert,
      'tls-auth-clients': 'no',
    };
    const server = open(await startRedis({ tls: true, settings: { ...settings, requirepass: 'sesame' } }));
    const url = server.url.replace('//', '//:sesame@');
    const trusting = open(connectRedis({ url, timeoutMs, tls: { ca: readFileSync(cert) } }));
    await until(async () => trusting.ready(1000), 5000);
    expect(await trusting.runScript(echo, ['k'], ['1'])).toBe('1');
    const distrusting = open(connectRedis({ url, timeoutMs }));
    expect(await distrusting.ready(500)).toBe(false);
    expect(await fault(distrusting.command('PING'))).toBe('connection');
    rmSync(directory, { recursive: true });
  });

  test('a wrong type is a fault with the word error and does not count as away', async () => {
    const redis = await connect(open(await startRedis({})).url);
    await redis.command('LPUSH', 'list', 'x');
    expect(await fault(redis.command('GET', 'list'))).toBe('error');
    expect(redis.state().status).toBe('ready');
  });

  test('an evicting policy is refused', async () => {
    const settings = { maxmemory: '100mb', 'maxmemory-policy': 'allkeys-lru' };
    const server = open(await startRedis({ settings }));
    const redis = open(connectRedis({ url: server.url, timeoutMs }));
    await expect(redis.ready(2000)).rejects.toMatchObject({ word: 'evicting' });
    expect(await fault(redis.command('PING'))).toBe('evicting');
  });

  test('after close every call is refused', async () => {
    const redis = await connect(open(await startRedis({})).url);
    await redis.close();
    expect(await fault(redis.command('PING'))).toBe('closed');
  });

  test('channels are heard again after a restart, and the listener is told', async () => {
    const server = open(await startRedis({}));
    const redis = await connect(server.url);
    const heard: string[] = [];
    let reconnects = 0;
    const stop = redis.subscribe(
      'purge',
      (message) => heard.push(message),
      () => {
        reconnects += 1;
      },
    );
    const say = (message: string) =>
      until(async () => Number(await redis.command('PUBLISH', 'purge', message)) > 0);
    await say('one');
    await until(async () => heard.includes('one'));
    expect(reconnects).toBe(0);
    await server.process?.restart();
    await until(async () => reconnects === 1);
    await say('two');
    await until(async () => heard.includes('two'));
    stop();
    await until(async () => Number(await redis.command('PUBLISH', 'purge', 'three')) === 0);
    expect(heard).not.toContain('three');
  });
});

describe('a Cluster', () => {
  test('commands and scripts reach the node of their keys; a dead node fails only its slots', async () => {
    const cluster = open(await startCluster());
    const redis = await connect(cluster.url);
    expect(redis.kind).toBe('cluster');
    const keys = Array.from({ length: 30 }, (_, i) => `{${i}}`);
    for (const key of keys) expect(await redis.runScript(echo, [key], [key])).toBe(key);
    for (const key of keys) expect((await redis.runScriptAndWait(echo, [key], [key], 0)).reply).toBe(key);
    const heard: string[] = [];
    redis.subscribe('c', (message) => heard.push(message));
    await until(async () => {
      await redis.command('PUBLISH', 'c', 'hello');
      return heard.length > 0;
    });
    cluster.nodes[0]?.pause();
    const words = await Promise.all(keys.map((key) => fault(redis.runScript(echo, [key], ['x']))));
    expect(new Set(words)).toEqual(new Set(['none', 'timeout']));
    cluster.nodes[0]?.resume();
    await until(
      async () => (await redis.runScript(echo, [keys[words.indexOf('timeout')] ?? ''], ['y'])) === 'y',
    );
  });
});

describe('a Sentinel', () => {
  test('writes go on with the new primary after a failover, a kill and a stop', async () => {
    const group = open(await startSentinel({ replicas: 2 }));
    const redis = await connect(group.url);
    expect(await redis.command('SET', 'a', '1')).toBe('OK');
    expect((await redis.runScriptAndWait(echo, ['b'], ['1'], 2)).replicas).toBe(2);
    await group.failover();
    await until(async () => (await redis.command('SET', 'a', '2')) === 'OK', 10_000);
    const primary = await group.primary();
    primary.pause();
    await group.awaitNewPrimary(primary);
    await until(async () => (await redis.command('SET', 'a', '3')) === 'OK', 10_000);
    expect(redis.state().status).toBe('ready');
  });

  test('connections that are being made anew while the Sentinel announces the next primary come back', async () => {
    const group = open(await startSentinel());
    const all = await Promise.all(Array.from({ length: 5 }, () => connect(group.url)));
    const works = async (redis: Redis) =>
      (await redis.runScript(echo, ['k'], ['1'])) === '1' &&
      (await redis.runScriptAndWait(echo, ['k'], ['1'], 1)).replicas === 1;
    const heard = new Set<Redis>();
    for (const redis of all) {
      await until(() => works(redis));
      redis.subscribe('c', () => heard.add(redis));
    }
    const before = await group.primary();
    await before.kill();
    const asking = all.map((redis) => until(() => works(redis), 20_000));
    await group.awaitNewPrimary(before);
    await before.restart();
    await Promise.all(asking);
    await until(async () => {
      await all[0]?.command('PUBLISH', 'c', 'hello');
      return heard.size === all.length;
    });
  });
});

test('calls that wait for a connection leave nothing behind', async () => {
  const warnings: Error[] = [];
  const hear = (warning: Error) => warnings.push(warning);
  process.on('warning', hear);
  const server = open(await startRedis({}));
  const redis = await connect(server.url);
  await redis.runScriptAndWait(echo, ['k'], ['1'], 0);
  // Longer than a silent connection is kept: the next ones are taken, and nothing is said on them.
  server.process?.pause();
  for (let i = 0; i < 10; i += 1) {
    const calls = Array.from({ length: 20 }, () => fault(redis.runScriptAndWait(echo, ['k'], ['1'], 0)));
    expect(new Set(await Promise.all(calls))).not.toContain('none');
  }
  server.process?.resume();
  await until(async () => (await redis.runScriptAndWait(echo, ['k'], ['2'], 0)).reply === '2');
  process.off('warning', hear);
  expect(warnings).toEqual([]);
});

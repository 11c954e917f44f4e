import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { childrenOf } from '../harness/children-of.ts';
import { eventually } from '../harness/eventually.ts';
import { untilRefused } from '../harness/free-port.ts';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { type Shopward, type ShopwardOptions, startShopward } from '../harness/shopward.ts';

let redis: RedisProcess | undefined;
let upstream: RecordingUpstream;
let shopward: Shopward;
let release: () => void;

/** Loaded before the program: on SIGUSR2 it throws an error that no code catches. */
const faultFile = path.join(tmpdir(), `shopward-fault-${process.pid}.mjs`);
const fault = `process.on('SIGUSR2', () => { throw new Error('planted redis://u:s3cret@h/0'); });`;

async function start(config: object = {}, more: Partial<ShopwardOptions> = {}): Promise<void> {
  await writeFile(faultFile, fault);
  const released = Promise.withResolvers<void>();
  release = released.resolve;
  upstream = await startRecordingUpstream(async ({ head }) => {
    if (head.startsWith('POST /slow')) await released.promise;
    return answer('done');
  });
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config,
    env: { NODE_OPTIONS: `--import=${faultFile}` },
    ...more,
  });
}

afterEach(async () => {
  await shopward.kill();
  await upstream.close();
  await redis?.close();
  redis = undefined;
});

const get = 'GET /open HTTP/1.1\r\nHost: shop.example\r\n\r\n';

it.each([1, 2])('SIGUSR1 opens no debugger (workers: %i)', async (workers) => {
  redis = await startRedisProcess();
  await start({ workers, store: { url: `redis://127.0.0.1:${redis.port}` } });
  for (const pid of [shopward.pid, ...childrenOf(shopward)]) process.kill(pid, 'SIGUSR1');
  expect((await exchangeRaw(shopward.port, get)).status).toBe(200);
  await shopward.stop();
  expect(shopward.output()).not.toMatch(/debugger|inspector/i);
});

/** Sends SIGHUP right after the first handlers of signals are set, long before requests are served. */
const earlyReload = `process.on('newListener', function early(name) {
  if (name !== 'SIGUSR1') return;
  process.off('newListener', early);
  setImmediate(() => process.kill(process.pid, 'SIGHUP'));
})`;

it('a reload during the start does not end the process', async () => {
  const preload = `--import=data:text/javascript,${encodeURIComponent(earlyReload)}`;
  await start({}, { env: { NODE_OPTIONS: preload } });
  expect((await exchangeRaw(shopward.port, get)).status).toBe(200);
  await shopward.stop();
});

it.each(['/dev/full', '>(true)'])('standard error that cannot be written ends no process: %s', async (to) => {
  redis = await startRedisProcess();
  const config = { workers: 2, store: { url: `redis://127.0.0.1:${redis.port}` } };
  const launcher = ['bash', '-c', `exec "$@" 2> ${to}`, 'bash'];
  await start(config, { launcher, awaitListening: false });
  await shopward.waitForLog(({ event }) => event === 'workers');
  await shopward.stop();
});

async function openSlow() {
  const busy = await openRawConnection(shopward.port);
  await busy.write('POST /slow HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\n{}');
  await eventually('the request upstream', () => upstream.bytes().includes('POST /slow') || undefined);
  return busy;
}

it('after an uncaught error the process finishes open requests, accepts no connection and exits with 1', async () => {
  await start();
  const busy = await openSlow();
  shopward.signal('SIGUSR2');
  const line = await shopward.waitForLog(({ event }) => event === 'crash');
  expect(line).toMatchObject({ level: 'fatal', origin: 'uncaughtException' });
  await untilRefused(shopward.port);
  expect((await fetch(`${shopward.adminUrl}/readyz`)).status).toBe(503);
  release();
  const response = await busy.readResponse();
  expect([response.status, response.body.toString()]).toEqual([200, 'done']);
  expect(await shopward.exited).toBe(1);
  expect(shopward.output()).not.toContain('s3cret');
});

it('a worker with an uncaught error is replaced, and no request is lost', async () => {
  redis = await startRedisProcess();
  await start({ workers: 2, store: { url: `redis://127.0.0.1:${redis.port}` } });
  const busy = await openSlow();
  process.kill(childrenOf(shopward)[0] ?? Number.NaN, 'SIGUSR2');
  await shopward.waitForLog(({ event }) => event === 'worker-replaced');
  for (let i = 0; i < 6; i++) expect((await exchangeRaw(shopward.port, get)).status).toBe(200);
  release();
  expect((await busy.readResponse()).status).toBe(200);
  expect(shopward.exitCode).toBe(null);
  expect(shopward.log()).toContainEqual(expect.objectContaining({ event: 'worker-ended', why: 'fault' }));
  await shopward.stop();
});

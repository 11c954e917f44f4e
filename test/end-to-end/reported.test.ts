import { createServer } from 'node:http';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { listen } from '../harness/listen.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import {
  type RunningShopward,
  type Shopward,
  type ShopwardOptions,
  startShopward,
} from '../harness/shopward.ts';
import { makeSigner, publicJwk } from '../unit/access/signing.ts';

/** What operators see of a fault: log, metrics, /readyz and console. */
let upstream: RecordingUpstream;
let shopward: RunningShopward;
const closings: (() => unknown)[] = [];

/** A process, for tests that need signals or standard output. */
async function startProcess(options: Partial<ShopwardOptions>): Promise<Shopward> {
  const one = await startShopward({ upstream: await startUpstream(), ...options });
  shopward = one;
  return one;
}
async function startUpstream(): Promise<string> {
  upstream = await startRecordingUpstream(() => answer(), { port: await freePort() });
  closings.push(() => upstream.close());
  return `http://127.0.0.1:${upstream.port}`;
}
afterEach(async () => {
  await shopward?.stop();
  for (const close of closings.splice(0)) await close();
});

const ask = (path: string) => exchangeRaw(shopward.port, `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
const page = async (path: string) => await (await fetch(shopward.adminUrl + path)).text();
async function reasons(): Promise<readonly string[]> {
  const response = await fetch(`${shopward.adminUrl}/readyz`);
  // None of these faults makes the proxy unready.
  expect(response.status).toBe(200);
  return ((await response.json()) as { reasons: string[] }).reasons;
}
const metric = async (name: string) =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await page('/metrics'))?.[1]);
async function tile(id: string): Promise<{ status: string; text: string } | undefined> {
  const { parts } = JSON.parse(await page('/api/state')) as {
    parts: { id: string; status: string; text: string }[];
  };
  return parts.find((part) => part.id === id);
}

it('a key set that cannot be fetched is logged and reported until it can be again', async () => {
  let status = 200;
  const keys: object[] = [];
  const server = createServer((_incoming, response) =>
    response.writeHead(status).end(JSON.stringify({ keys })),
  );
  const { url, close } = await listen(server);
  closings.push(close);
  keys.push(publicJwk(makeSigner('RS256'), { alg: 'RS256' }));
  const { signal } = await startProcess({ config: { auth: { keys: { jwks: url } } } });
  expect(await metric('shopward_keys_last_load_success')).toBe(1);
  status = 503;
  signal('SIGHUP');
  expect(await shopward.waitForLog(({ event }) => event === 'keys-not-refreshed')).toMatchObject({
    level: 'error',
    reason: 'status',
  });
  expect(await reasons()).toEqual([
    expect.stringMatching(/^keys were not refreshed, the last good ones are used: status: .* \(503\)$/),
  ]);
  expect([await metric('shopward_keys'), await metric('shopward_keys_last_load_success')]).toEqual([1, 0]);
  expect(await metric('shopward_key_load_failures_total')).toBeGreaterThan(0);
  expect(await tile('keys')).toMatchObject({ status: 'degraded' });
  status = 200;
  keys.push(publicJwk(makeSigner('RS256', 'next'), { alg: 'RS256', kid: 'next' }));
  signal('SIGHUP');
  await shopward.waitForLog(({ event }) => event === 'keys-back');
  await shopward.waitForLog((line) => line.event === 'keys-reloaded' && line.keys === 2);
  expect(await reasons()).toEqual([]);
  expect(await metric('shopward_keys_last_load_success')).toBe(1);
});

it('a log that cannot be written is on /readyz and counted, and requests are served', async () => {
  await startProcess({ launcher: ['sh', '-c', 'exec "$@" >/dev/full', 'sh'] });
  expect((await ask('/stores')).status).toBe(200);
  expect(await eventually('the reason', async () => (await reasons())[0])).toBe(
    'log: lines cannot be written (ENOSPC), they wait in memory',
  );
  expect(await metric('shopward_log_write_failures_total')).toBeGreaterThan(0);
  expect((await ask('/stores')).status).toBe(200);
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DemoShop } from '../../demo/shop.ts';
import { type SingleRedis, startRedis } from '../harness/redis-processes.ts';
import { asked, exchangeBody, startDemoShop, tokenClient } from './token-front.ts';

let shop: DemoShop;
let redis: SingleRedis;
const children: ChildProcess[] = [];

beforeEach(async () => {
  shop = await startDemoShop({ controlPort: false });
  redis = await startRedis({ settings: {} });
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await redis.close();
  await shop.close();
});

/** Short enough to be waited for, and longer than a slow machine takes for what has to be done before they are over. */
const [answerWithinMs, marginMs] = [6000, 2000];

async function spawnReplica() {
  const args = [shop.port, shop.jwksUrl, redis.url, answerWithinMs, marginMs].map(String);
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'replica-process.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [line] = await once(child.stdout, 'data');
  return { child, ...tokenClient(Number(String(line))) };
}

const refreshes = () => asked(shop, 'POST', '/refresh-tokens');

test('a replica killed in the middle of a refresh: unavailable until its claim lapses, then the shop decides', async () => {
  const [doomed, other] = [await spawnReplica(), await spawnReplica()];
  const { refreshToken } = await doomed.signIn();
  shop.settings.latencyMs = 30_000;
  const lost = doomed.refresh(refreshToken).catch(() => 'lost');
  await expect.poll(refreshes).toBe(1);
  doomed.child.kill('SIGKILL');
  expect(await lost).toBe('lost');
  const refused = await other.refresh(refreshToken);
  expect([refused.status, refused.json.errors[0].code]).toEqual([503, 'refresh-token-busy']);
  expect(refreshes()).toBe(1);
  shop.settings.latencyMs = 0;
  const said = new Set<number>();
  await expect
    .poll(async () => {
      const { status } = await other.refresh(refreshToken);
      said.add(status);
      return status;
    })
    .toBe(201);
  expect([...said]).toEqual([503, 201]);
  expect((await other.refresh(refreshToken)).status).toBe(401);
});

test('a replica killed in the middle of a revocation: revoked', async () => {
  const [doomed, other] = [await spawnReplica(), await spawnReplica()];
  for (const which of ['by id', 'mine']) {
    const { refreshToken, accessToken } = await other.signIn();
    shop.settings.latencyMs = 30_000;
    const before = shop.received.total;
    const killed = which === 'mine' ? await spawnReplica() : doomed;
    const lost = killed.revoke(accessToken, which === 'mine' ? which : refreshToken).catch(() => 'lost');
    await expect.poll(() => shop.received.total).toBe(before + 1);
    killed.child.kill('SIGKILL');
    expect(await lost).toBe('lost');
    shop.settings.latencyMs = 0;
    expect((await other.refresh(refreshToken)).status).toBe(401);
  }
  expect(refreshes()).toBe(0);
});

test('a replica stopped while another takes over: whoever comes first marks the token used', async () => {
  const [slow, other] = [await spawnReplica(), await spawnReplica()];
  const { refreshToken } = await slow.signIn();
  shop.settings.latencyMs = 3000;
  const late = slow.refresh(refreshToken);
  await expect.poll(refreshes).toBe(1);
  slow.child.kill('SIGSTOP');
  // Its answer lies in the socket, its claim runs out; then the shop is asked by the other one, by design.
  shop.settings.latencyMs = 0;
  await expect.poll(async () => (await other.refresh(refreshToken)).status).toBe(201);
  slow.child.kill('SIGCONT');
  await late;
  expect((await other.refresh(refreshToken)).status).toBe(401);
});

test('a client that leaves in the middle: the refresh is brought to its end, and counts', async () => {
  const replica = await spawnReplica();
  const { refreshToken } = await replica.signIn();
  shop.settings.latencyMs = 3000;
  const leaving = new AbortController();
  const port = replica.port;
  const gone = fetch(`http://127.0.0.1:${port}/refresh-tokens`, {
    method: 'POST',
    headers: { Accept: '*/*', 'Content-Type': 'application/json' },
    body: exchangeBody(refreshToken),
    signal: leaving.signal,
  }).catch(() => 'gone');
  await expect.poll(refreshes).toBe(1);
  leaving.abort();
  expect(await gone).toBe('gone');
  // Longer than a claim would hold: what refuses now is that the token is used.
  await sleep(answerWithinMs + marginMs + 500);
  expect((await replica.refresh(refreshToken)).status).toBe(401);
  expect(refreshes()).toBe(1);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TestContext, test } from 'vitest';
import { begun } from '../../harness/begun.ts';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { startReplica } from './replica.ts';
import { asked, exchangeBody, startDemoShop, tokenClient } from './token-front.ts';

/** Short enough to be waited for, and longer than a slow machine takes for what has to be done before they are over. */
const [answerWithinMs, marginMs] = [4000, 2000];
/** Of a shop that is slow: longer than a claim holds at first, and in time all the same. */
const slowMs = 2500;

/** What each case has of its own, so that they wait side by side. */
async function openStage(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(await startDemoShop());
  const redis = open(await startRedis({ settings: {} }));
  /** A process, for those that are killed or stopped. */
  async function spawnReplica() {
    const args = [shop.port, shop.jwksUrl, redis.url, answerWithinMs, marginMs].map(String);
    const file = path.join(import.meta.dirname, 'replica-process.ts');
    const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    open({ close: async () => void child.kill('SIGKILL') });
    const [line] = await once(child.stdout, 'data');
    return { child, ...tokenClient(Number(String(line))) };
  }
  /** The same in this process, for those that live on. */
  async function startHere() {
    return tokenClient(open(await startReplica(shop, redis.url, { answerWithinMs, marginMs })).port);
  }
  return {
    shop,
    spawnReplica,
    startReplica: startHere,
    refreshes: () => asked(shop, 'POST', '/refresh-tokens'),
  };
}

test.concurrent('a replica killed in the middle of a refresh: unavailable until its claim lapses, then the shop decides', async (context) => {
  const { expect } = context;
  const stage = await openStage(context);
  const { shop } = stage;
  const [doomed, other] = [await stage.spawnReplica(), await stage.startReplica()];
  const { refreshToken } = await doomed.signIn();
  shop.settings.latencyMs = 30_000;
  const lost = doomed.refresh(refreshToken).catch(() => 'lost');
  await expect.poll(() => stage.refreshes()).toBe(1);
  doomed.child.kill('SIGKILL');
  expect(await lost).toBe('lost');
  const refused = await other.refresh(refreshToken);
  expect([refused.status, refused.json.errors[0].code]).toEqual([503, 'refresh-token-busy']);
  expect(stage.refreshes()).toBe(1);
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

test.concurrent('a replica killed in the middle of a revocation: revoked', async (context) => {
  const { expect } = context;
  const stage = await openStage(context);
  const { shop } = stage;
  const [doomed, other] = [await stage.spawnReplica(), await stage.startReplica()];
  for (const which of ['by id', 'mine']) {
    const { refreshToken, accessToken } = await other.signIn();
    shop.settings.latencyMs = 30_000;
    const before = shop.received.total;
    const killed = which === 'mine' ? await stage.spawnReplica() : doomed;
    const lost = killed.revoke(accessToken, which === 'mine' ? which : refreshToken).catch(() => 'lost');
    await expect.poll(() => shop.received.total).toBe(before + 1);
    killed.child.kill('SIGKILL');
    expect(await lost).toBe('lost');
    shop.settings.latencyMs = 0;
    expect((await other.refresh(refreshToken)).status).toBe(401);
  }
  expect(stage.refreshes()).toBe(0);
});

test.concurrent('a replica stopped while another takes over: whoever comes first marks the token used', async (context) => {
  const { expect } = context;
  const stage = await openStage(context);
  const { shop } = stage;
  const [slow, other] = [await stage.spawnReplica(), await stage.startReplica()];
  const { refreshToken } = await slow.signIn();
  shop.settings.latencyMs = slowMs;
  const late = begun(slow.refresh(refreshToken));
  await expect.poll(() => stage.refreshes()).toBe(1);
  slow.child.kill('SIGSTOP');
  // Its answer lies in the socket, its claim runs out; then the shop is asked by the other one, by design.
  shop.settings.latencyMs = 0;
  await expect.poll(async () => (await other.refresh(refreshToken)).status).toBe(201);
  slow.child.kill('SIGCONT');
  await late;
  expect((await other.refresh(refreshToken)).status).toBe(401);
});

test.concurrent('a client that leaves in the middle: the refresh is brought to its end, and counts', async (context) => {
  const { expect } = context;
  const stage = await openStage(context);
  const { shop } = stage;
  const replica = await stage.startReplica();
  const { refreshToken } = await replica.signIn();
  shop.settings.latencyMs = slowMs;
  const leaving = new AbortController();
  const port = replica.port;
  const gone = fetch(`http://127.0.0.1:${port}/refresh-tokens`, {
    method: 'POST',
    headers: { Accept: '*/*', 'Content-Type': 'application/json' },
    body: exchangeBody(refreshToken),
    signal: leaving.signal,
  }).catch(() => 'gone');
  await expect.poll(() => stage.refreshes()).toBe(1);
  // Longer than its claim holds, which was there before the shop was asked.
  const lapsed = sleep(answerWithinMs + marginMs + 500);
  leaving.abort();
  expect(await gone).toBe('gone');
  // Nobody else gets through to the shop meanwhile.
  const ask = async () => (await replica.refresh(refreshToken)).status;
  await expect.poll(ask, { interval: 250 }).toBe(401);
  expect(stage.refreshes()).toBe(1);
  // What refuses now is that the token is used.
  await lapsed;
  expect((await replica.refresh(refreshToken)).status).toBe(401);
  expect(stage.refreshes()).toBe(1);
});

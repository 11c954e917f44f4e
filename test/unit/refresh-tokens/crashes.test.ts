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

/** Short, because tests wait for their end. Long enough for a slow machine to do its steps before it. */
const [answerWithinMs, marginMs] = [4000, 2000];
/** The latency of a slow shop: shorter than `answerWithinMs`. */
const slowMs = 2500;

/** A shop and a Redis for each test, so that the tests can wait concurrently. */
async function openStage(context: Pick<TestContext, 'onTestFinished'>) {
  const open = closingAtEnd(context);
  const shop = open(await startDemoShop());
  const redis = open(await startRedis({ settings: {} }));
  /** A replica as a process, which can be killed or stopped. */
  async function spawnReplica() {
    const args = [shop.port, shop.jwksUrl, redis.url, answerWithinMs, marginMs].map(String);
    const file = path.join(import.meta.dirname, 'replica-process.ts');
    const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    open({ close: async () => void child.kill('SIGKILL') });
    const [line] = await once(child.stdout, 'data');
    return { child, ...tokenClient(Number(String(line))) };
  }
  /** A replica in this process. */
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

test.concurrent('a replica killed during a refresh: 503 until its claim ends, then 201 once', async (context) => {
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

test.concurrent('a replica killed during a revocation: the token is revoked', async (context) => {
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

test.concurrent('a replica stopped during a refresh: another one gets 201 after the claim has ended, then 401', async (context) => {
  const { expect } = context;
  const stage = await openStage(context);
  const { shop } = stage;
  const [slow, other] = [await stage.spawnReplica(), await stage.startReplica()];
  const { refreshToken } = await slow.signIn();
  shop.settings.latencyMs = slowMs;
  const late = begun(slow.refresh(refreshToken));
  await expect.poll(() => stage.refreshes()).toBe(1);
  slow.child.kill('SIGSTOP');
  // The stopped replica does not read its answer and its claim ends. Then the other replica asks the shop, by design.
  shop.settings.latencyMs = 0;
  await expect.poll(async () => (await other.refresh(refreshToken)).status).toBe(201);
  slow.child.kill('SIGCONT');
  await late;
  expect((await other.refresh(refreshToken)).status).toBe(401);
});

test.concurrent('a client that disconnects during a refresh: the refresh is completed and the token is used', async (context) => {
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
  // Longer than the claim lasts. It was made before the shop was asked.
  const lapsed = sleep(answerWithinMs + marginMs + 500);
  leaving.abort();
  expect(await gone).toBe('gone');
  // Meanwhile no other refresh reaches the shop.
  const ask = async () => (await replica.refresh(refreshToken)).status;
  await expect.poll(ask, { interval: 250 }).toBe(401);
  expect(stage.refreshes()).toBe(1);
  // The claim has ended; the token is refused because it is used.
  await lapsed;
  expect((await replica.refresh(refreshToken)).status).toBe(401);
  expect(stage.refreshes()).toBe(1);
});

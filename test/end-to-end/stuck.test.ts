import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { childrenOf } from '../harness/children-of.ts';
import { eventually } from '../harness/eventually.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { type LogLine, type Shopward, startShopward } from '../harness/shopward.ts';

let redis: RedisProcess;
let upstream: RecordingUpstream;
let folder: string;
const started: Shopward[] = [];

beforeAll(async () => {
  redis = await startRedisProcess();
  upstream = await startRecordingUpstream(() => answer());
  folder = await mkdtemp(path.join(tmpdir(), 'shopward-stuck-'));
  // Makes SIGUSR2 block the event loop: with little CPU time in a loop that sleeps, or with full load in a regular
  // expression.
  await writeFile(
    path.join(folder, 'get-stuck.mjs'),
    "process.on('SIGUSR2', function getStuck() { if (process.env.HOW === 'expression') /^(a+)+$/.test('a'.repeat(60) + 'b'); for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20); });",
  );
});
afterAll(async () => {
  for (const shopward of started) {
    // A stopped worker would keep the output of its primary open.
    if (shopward.exitCode === null && shopward.signalCode === null)
      for (const pid of childrenOf(shopward)) process.kill(pid, 'SIGCONT');
    await shopward.kill();
  }
  await upstream?.close();
  await redis?.close();
  await rm(folder, { recursive: true });
});

async function start(workers: number, how = 'loop', eventLoopStall = '3s'): Promise<Shopward> {
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { workers, store: { url: `redis://127.0.0.1:${redis.port}` }, limits: { eventLoopStall } },
    env: { NODE_OPTIONS: `--import ${pathToFileURL(path.join(folder, 'get-stuck.mjs'))}`, HOW: how },
  });
  started.push(shopward);
  return shopward;
}

const served = (shopward: Shopward) =>
  fetch(`${shopward.url}/stores`, { signal: AbortSignal.timeout(60_000) }).then(
    ({ status }) => (status === 200 ? true : undefined),
    () => undefined,
  );
const isEvent = (event: string) => (line: { readonly event?: unknown }) => line.event === event;

// Concurrent: nearly all of the time is waiting.
describe.concurrent('a process whose event loop is blocked', () => {
  it.each(['loop', 'expression'])('in a %s logs its stack and ends', async (how) => {
    const shopward = await start(1, how);
    shopward.signal('SIGUSR2');
    const { stack, level } = await shopward.waitForLog(isEvent('event-loop-stuck'));
    expect([level, String(stack)]).toEqual(['fatal', expect.stringContaining('getStuck')]);
    expect(await shopward.exited).toBe(null);
  });

  it('does not end after a SIGSTOP of 4.5 s', async () => {
    const shopward = await start(1);
    shopward.signal('SIGSTOP');
    await sleep(4_500);
    shopward.signal('SIGCONT');
    expect(await served(shopward)).toBe(true);
    await sleep(3_500);
    expect(await served(shopward)).toBe(true);
    await shopward.stop();
    expect(shopward.log().some(isEvent('event-loop-stuck'))).toBe(false);
  });
});

describe.concurrent('a worker whose event loop is blocked', () => {
  it('is logged and replaced, and so is a stopped one, which does not block the end of the process', async () => {
    const shopward = await start(2);
    const [victim = Number.NaN] = childrenOf(shopward);
    process.kill(victim, 'SIGUSR2');
    expect(await shopward.waitForLog(isEvent('event-loop-stuck'))).toMatchObject({
      worker: expect.any(Number),
    });
    await shopward.waitForLog(isEvent('worker-replaced'));
    expect(childrenOf(shopward)).not.toContain(victim);
    for (let i = 0; i < 10; i++) expect(await served(shopward)).toBe(true);

    const isStuck = (pid: number) => (line: LogLine) => isEvent('worker-stuck')(line) && line.pid === pid;
    const [stopped = Number.NaN] = childrenOf(shopward);
    const { length } = shopward.log();
    process.kill(stopped, 'SIGSTOP');
    await shopward.waitForLog(isStuck(stopped));
    await shopward.waitForLog(isEvent('worker-replaced'), length);
    for (let i = 0; i < 10; i++) expect(await served(shopward)).toBe(true);

    const [last = Number.NaN] = childrenOf(shopward);
    process.kill(last, 'SIGSTOP');
    shopward.signal('SIGTERM');
    expect(await shopward.exited).toBe(0);
    expect(shopward.log().some(isStuck(last))).toBe(true);
  });

  it('that is stopped delays no admin answer beyond the time-out of a probe', async () => {
    const shopward = await start(2, 'loop', '5m');
    const [victim = Number.NaN] = childrenOf(shopward);
    process.kill(victim, 'SIGSTOP');
    // Repeats a probe that is late because the machine is busy; a probe that waits for the worker is always late.
    const probe = ([name, text]: readonly [string, string]) =>
      eventually(`${text} at ${name} within a second`, () =>
        fetch(`${shopward.adminUrl}${name}`, { signal: AbortSignal.timeout(1_000) })
          .then(async (response) => (response.ok && (await response.text()).includes(text)) || undefined)
          .catch(() => undefined),
      );
    const probes = [
      ['/readyz', '1 of 2 workers not serving'],
      ['/metrics', 'shopward_workers 2'],
      ['/livez', ''],
    ] as const;
    await Promise.all(probes.map(probe));
  });
});

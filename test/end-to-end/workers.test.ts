import { readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { childrenOf } from '../harness/children-of.ts';
import { eventually } from '../harness/eventually.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { listOf, type Shopward, startShopward } from '../harness/shopward.ts';

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: shop.example\r\n\r\n`;

let redis: RedisProcess;
let upstream: RecordingUpstream;
let shopward: Shopward;

const mappingFile = path.join(tmpdir(), `shopward-workers-${process.pid}.csv`);

beforeAll(async () => {
  await writeFile(mappingFile, 'url,entityType,entityId\n/en/a,cms-pages,1\n/en/b,cms-pages,2\n');
  redis = await startRedisProcess();
  upstream = await startRecordingUpstream(() => answer());
});
afterAll(async () => {
  await upstream?.close();
  await redis?.close();
  await rm(mappingFile);
});

let isRunning = false;

/** Tests of a group share three workers, so counters do not start at zero. A failed test ends them. */
beforeEach(async () => {
  if (isRunning) return;
  isRunning = true;
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: {
      workers: 3,
      store: { url: `redis://127.0.0.1:${redis.port}` },
      urlResolver: { source: mappingFile },
    },
    rows: ['GET /secret'],
  });
});
const end = async () => {
  isRunning = false;
  await shopward.kill();
};
afterEach(async ({ task }) => {
  if (task.result?.state === 'fail') await end();
});

const workers = () => childrenOf(shopward);

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.replace(/[ {].*/, '') === name);
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

interface System {
  readonly processes: readonly { readonly pid: number }[];
  readonly workers: number;
  readonly keys: readonly object[];
  readonly sharing: number | null;
}

const admin = async <T>(path: string) => (await fetch(`${shopward.adminUrl}${path}`)).json() as Promise<T>;

/** Polls, because a reading omits a worker that does not answer in time. */
const metricBecomes = (name: string, wanted: number) =>
  eventually(`${name} ${wanted}`, async () => (await metric(name)) === wanted || undefined);

/** The reasons of `/readyz` once it is 200: it is 503 while no worker answers in time. */
const readyReasons = () =>
  eventually('readiness', async () => {
    const response = await fetch(`${shopward.adminUrl}/readyz`);
    const { reasons } = (await response.json()) as { reasons: string[] };
    return response.ok ? reasons : undefined;
  });

describe('workers', () => {
  afterAll(end);

  it('share one port and one admin port, and decide alike', async () => {
    expect(workers()).toHaveLength(3);
    const [requests, refusals] = [await metric(requestCount), await metric(refusalCount)];
    let rounds = 0;
    // The kernel chooses the worker of each connection.
    await eventually('a request at each worker', async () => {
      rounds += 1;
      expect((await exchangeRaw(shopward.port, get('/open'))).status).toBe(200);
      expect((await exchangeRaw(shopward.port, get('/secret'))).status).toBe(401);
      const seen = shopward.log().flatMap(({ event, worker }) => (event === 'request' ? [worker] : []));
      return new Set(seen).size === 3 || undefined;
    });
    await metricBecomes(requestCount, requests + 2 * rounds);
    await metricBecomes(refusalCount, refusals + rounds);
    await metricBecomes('shopward_workers_serving', 3);
    // Gauges that are the same in all workers are not summed.
    expect(await metric('shopward_protected_rows')).toBe(1);
    expect(await metric('shopward_keys')).toBe(1);
    expect(await metric('shopward_url_file_rows')).toBe(2);
    await eventually('the row to be met', async () =>
      (await metric('shopward_protected_rows_unmet')) === 0 ? true : undefined,
    );
    await readyReasons();
  });

  it('report the decisions of all workers to the console', async () => {
    const all = (await metric(refusalCount)) + 6;
    for (let i = 0; i < 6; i++) await exchangeRaw(shopward.port, get('/secret'));
    const rows = await eventually('all decisions', async () => {
      const body = await admin<{ rows: { id: string; requests: number }[] }>('/api/rows');
      return body.rows[0]?.requests === all ? body.rows : undefined;
    });
    expect(rows).toEqual([
      expect.objectContaining({ id: 'GET /secret', refusals: { 'access-token-missing': all } }),
    ]);
    const search = '/api/decisions/search?outcome=refused';
    await expect.poll(async () => (await admin<{ found: number }>(search)).found).toBe(all);
    const { outcomes } = await admin<{ outcomes: { refused: number[] } }>('/api/series?range=1h');
    expect(outcomes.refused.reduce((sum, times) => sum + times, 0)).toBe(all);
    await eventually('the store in the state', async () => {
      const { parts } = await admin<{ parts: { id: string }[] }>('/api/state');
      return parts.some(({ id }) => id === 'store') || undefined;
    });
  });

  it('explain tokens with the keys in force', async () => {
    const verdictOf = async (url: string) => {
      const body = JSON.stringify({ method: 'GET', url });
      const reply = await fetch(`${shopward.adminUrl}/api/explain`, { method: 'POST', body });
      return ((await reply.json()) as { verdict: string }).verdict;
    };
    expect(await verdictOf(shopward.issueToken())).toBe('token-accepted');
    expect(await verdictOf(shopward.issueToken({ exp: 1 }))).toBe('token-refused');
  });

  it('are listed with the number of processes that share the store, and each key once', async () => {
    const look = async () => {
      const { processes, workers, keys, sharing } = await admin<System>('/api/system');
      const pids = new Set(processes.map(({ pid }) => pid));
      return [pids.size, pids.has(shopward.pid), workers, keys.length, sharing];
    };
    await expect.poll(look).toEqual([3, false, 3, 1, 3]);
  });

  it('a worker that starts during an edit of the list gets the edit', async () => {
    const rounds = 3;
    const skipped = shopward.log().length;
    for (let round = 0; round < rounds; round++) {
      const before = replacements();
      const [victim = Number.NaN] = workers();
      process.kill(victim, 'SIGKILL');
      await sleep(240 * round);
      await replaceList(listOf(['GET /secret', `GET /round-${round}`]));
      await eventually('a replacement', () => replacements() > before || undefined);
      await eventually('the edit in all of them', async () =>
        (await metric('shopward_workers_serving')) === 3 &&
        (await statusesOf(`/round-${round}`, 6)).every((status) => status === 401)
          ? true
          : undefined,
      );
    }
    const ends = shopward.log(skipped).filter(({ event }) => event === 'worker-ended');
    expect(ends.map(({ why }) => why)).toEqual(Array(rounds).fill('SIGKILL'));
  });

  it('end with the primary on SIGTERM, which exits with 0', async () => {
    const pids = workers();
    isRunning = false;
    shopward.signal('SIGTERM');
    expect(await shopward.exited).toBe(0);
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow();
  });
});

describe('killed workers', () => {
  afterAll(end);

  it('are replaced, and their counts are kept', async () => {
    const [requests, restarts] = [await metric(requestCount), await metric('shopward_worker_restarts_total')];
    for (let i = 0; i < 9; i++) await exchangeRaw(shopward.port, get('/open'));
    await metricBecomes(requestCount, requests + 9);
    const [victim = Number.NaN, ...others] = workers();
    process.kill(victim, 'SIGKILL');
    await shopward.waitForLog(({ event }) => event === 'worker-replaced');
    expect(workers()).toHaveLength(3);
    expect(workers()).toEqual(expect.arrayContaining(others));
    expect(workers()).not.toContain(victim);
    for (let i = 0; i < 9; i++) expect((await exchangeRaw(shopward.port, get('/open'))).status).toBe(200);
    await metricBecomes(requestCount, requests + 18);
    await metricBecomes('shopward_worker_restarts_total', restarts + 1);
    expect(shopward.log()).toContainEqual(
      expect.objectContaining({ event: 'worker-ended', why: 'SIGKILL', pid: victim }),
    );
  });

  it('have replacements with the last good list and the same port', async () => {
    await replaceList(listOf(['GET /secret', 'GET /later']));
    await eventually('the new list', async () => {
      const statuses = await statusesOf('/later', 6);
      return statuses.every((status) => status === 401) || undefined;
    });
    expect(await metric('shopward_config_reloads_total')).toBe(1);
    // Breaks the file, so that the last good list is not the first one. Then kills all workers at once.
    await replaceList('groups: [');
    await shopward.waitForLog(({ event }) => event === 'list-refused');
    const before = replacements();
    for (const pid of workers()) process.kill(pid, 'SIGKILL');
    await eventually('three replacements', () => replacements() >= before + 3 || undefined);
    expect(await statusesOf('/later', 6)).toEqual([401, 401, 401, 401, 401, 401]);
    // All workers give the same reason for the list, so it does not name single ones. Reasons about the store may differ.
    const ofTheList = (await readyReasons()).filter((reason) => reason.startsWith('protected list'));
    expect(ofTheList).toHaveLength(1);
    expect(ofTheList.join()).not.toContain('workers)');
    expect(await metric('shopward_config_last_reload_success')).toBe(0);
    expect(await metric('shopward_config_reload_failures_total')).toBe(1);
  });

  it('end with their primary', async () => {
    const pids = workers();
    await end();
    for (const pid of pids) await eventually('the end of a worker', () => isGone(pid) || undefined);
  });
});

const requestCount = 'http_server_request_duration_seconds_count';
const refusalCount = 'shopward_rejections_total';
const replacements = () => shopward.log().filter(({ event }) => event === 'worker-replaced').length;

async function statusesOf(path: string, times: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let i = 0; i < times; i++) statuses.push((await exchangeRaw(shopward.port, get(path))).status);
  return statuses;
}

async function replaceList(text: string): Promise<void> {
  await writeFile(`${shopward.listFile}.new`, text);
  await rename(`${shopward.listFile}.new`, shopward.listFile);
}

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return true;
  }
}

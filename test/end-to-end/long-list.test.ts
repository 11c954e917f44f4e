import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { childrenOf } from '../harness/children-of.ts';
import { eventually } from '../harness/eventually.ts';
import { limitMemory } from '../harness/memory-limit.ts';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

const edits = 2;
const rowsOf = (edit: number) => [
  ...Array.from({ length: 60_000 }, (_, i) => `GET /type-${i % 300}-${edit}/{id}/part-${i}/{part}`),
  `GET /edit-${edit}`,
];
const listOf = (edit: number) =>
  `groups:\n  A:\n${rowsOf(edit)
    .map((row) => `    - ${row}\n`)
    .join('')}complete: true\n`;

let redis: RedisProcess;
let upstream: RecordingUpstream;
let shopward: Shopward;
let limit: ReturnType<typeof limitMemory>;

beforeAll(async () => {
  redis = await startRedisProcess();
  upstream = await startRecordingUpstream(() => answer());
  limit = limitMemory(512);
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { workers: 2, store: { url: `redis://127.0.0.1:${redis.port}` }, log: { level: 'info' } },
    rows: rowsOf(0),
    ...(limit && { launcher: limit.launcher }),
  });
});
afterAll(async () => {
  await shopward?.stop();
  await upstream?.close();
  await redis?.close();
  limit?.close();
});

/** Resident memory in MiB: current, and the peak since the start. 0: the process ends or has ended. */
function memoryOf(pid: number): { readonly now: number; readonly peak: number } {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const mib = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0) / 1024;
    return { now: mib('VmRSS'), peak: mib('VmHWM') };
  } catch {
    return { now: 0, peak: 0 };
  }
}

/** The kernel chooses the worker of each connection, so there are enough to reach both. */
async function isInForce(edit: number): Promise<boolean> {
  const asked = Array.from({ length: 32 }, () =>
    exchangeRaw(shopward.port, `GET /edit-${edit} HTTP/1.1\r\nHost: x\r\n\r\n`),
  );
  return (await Promise.all(asked)).every(({ status }) => status === 401);
}

it('edits that replace all 60,000 rows fit into 512 MiB with two workers, and the processes release their memory', async () => {
  // The process that checked the list at the start may still be ending.
  await eventually('the workers alone', () => childrenOf(shopward).length === 2 || undefined);
  const served = [shopward.pid, ...childrenOf(shopward)];
  const rest = served.map((pid) => memoryOf(pid).now);
  const checking = new Map<number, number>();
  const compared = (edit: number) =>
    shopward.log().filter(({ event }) => event === 'list-rows-not-logged').length === edit;
  for (let edit = 1; edit <= edits; edit++) {
    await writeFile(`${shopward.listFile}.new`, listOf(edit));
    await rename(`${shopward.listFile}.new`, shopward.listFile);
    await eventually(
      'the edit to be in force and compared',
      async () => {
        for (const pid of childrenOf(shopward))
          if (!served.includes(pid)) checking.set(pid, Math.max(memoryOf(pid).peak, checking.get(pid) ?? 0));
        return (compared(edit) && (await isInForce(edit))) || undefined;
      },
      120_000,
    );
  }
  const alive = [shopward.pid, ...childrenOf(shopward)].filter((pid) => served.includes(pid));
  expect(alive, shopward.output()).toEqual(served);
  for (const [i, pid] of served.entries()) {
    expect(memoryOf(pid).peak - (rest[i] ?? 0)).toBeLessThan(150);
    await eventually('released memory', () => memoryOf(pid).now - (rest[i] ?? 0) < 100 || undefined);
  }
  expect(limit?.killed() ?? 0).toBe(0);
  // Each edit starts a process; some end too soon to be seen.
  expect(checking.size).toBeGreaterThan(0);
  // It varies by a tenth with the collections of garbage, and the limit of 512 MiB has room for it.
  for (const peak of checking.values()) expect(peak).toBeLessThan(280);
}, 300_000);

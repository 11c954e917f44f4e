import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { complaintsOf, startChromium } from '../harness/chromium.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type SingleRedis, startRedis } from '../harness/redis-processes.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

/** What an open console says of replicas and workers that come and go: real processes, a real Redis, a real browser. */
let browser: Browser;
let redis: SingleRedis;
let upstream: RecordingUpstream;
let shopward: Shopward;
let page: Page;
let complaints: string[];

const start = (config: object = {}) =>
  startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /orders'],
    config: { store: { url: redis.url }, ...config },
  });

beforeAll(async () => {
  [browser, redis, upstream] = await Promise.all([
    startChromium(),
    startRedis(),
    startRecordingUpstream(() => answer('{}')),
  ]);
  shopward = await start({ workers: 2 });
  page = await browser.newPage();
  page.setDefaultTimeout(90_000);
  complaints = complaintsOf(page);
  await page.goto(`${shopward.adminUrl}/#/system`);
}, 90_000);
afterAll(async () => {
  await browser?.close();
  await shopward?.stop();
  await upstream?.close();
  await redis?.close();
});
afterEach(() => {
  expect(complaints).toEqual([]);
});

const says = (text: string) => page.locator('#processes-about', { hasText: text }).waitFor();

it('a replica that is killed, and one that is drained, are counted for twelve seconds at most, as the page says', async () => {
  await says('The store has heard of 2 processes of all replicas in the last 12 s.');
  // Side by side: with either of them still counted there would be three at the end.
  const [killed, drained] = await Promise.all([start(), start()]);
  await says('The store has heard of 4 processes of all replicas in the last 12 s.');
  await Promise.all([killed.kill(), drained.stop()]);
  // Nothing else on the page takes part in their end: this one goes on as before.
  await says(
    '2 of 2 processes serve here. The store has heard of 2 processes of all replicas in the last 12 s.',
  );
  // Of a store that is new no tag is handed out for a minute, which is no word about the replicas.
  expect(await page.locator('#health').textContent()).toMatch(/^ready(, not all well)?$/);
  expect(await page.locator('#silence').isHidden()).toBe(true);
  await page.locator('#tiles article', { hasText: 'Redis, single' }).getByText('well').waitFor();
});

it('a worker that is killed leaves the table, and another one takes its place', async () => {
  const pids = () => page.locator('#processes-body th').allTextContents();
  await says('2 of 2 processes serve here.');
  const [gone = '', stays = ''] = await pids();
  process.kill(Number(gone), 'SIGKILL');
  await expect.poll(pids, { timeout: 90_000 }).not.toContain(gone);
  await says('2 of 2 processes serve here.');
  expect(await pids()).toContain(stays);
});

it('a store that is away says nothing of others, and one that is back counts them again', async () => {
  await redis.process?.kill();
  await says('The store cannot be reached, so other replicas are not known.');
  const tile = page.locator('#tiles article', { hasText: 'Refresh tokens' });
  await tile.getByText('while the store is down no refresh can be checked').waitFor();
  expect(await tile.getAttribute('data-status')).toBe('unknown');
  expect(await page.locator('#health').textContent()).toBe('ready, but something is down');
  await redis.process?.restart();
  await says('The store has heard of 2 processes of all replicas in the last 12 s.');
  await page.locator('#tiles article[data-status="unknown"]').first().waitFor({ state: 'detached' });
});

import { describe, expect, it, type TestContext } from 'vitest';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { startShopward } from '../../harness/shopward.ts';
import { openPage, useBrowser } from './console-page.ts';

const stage = useBrowser();

/** Two workers, a store, and the page about them; each test has its own. */
async function staged(context: TestContext) {
  const open = closingAtEnd(context);
  const redis = open(await startRedis({}));
  const start = async (config: object = {}) => {
    const shopward = await startShopward({
      upstream: `http://127.0.0.1:${stage.upstream.port}`,
      rows: ['GET /orders'],
      config: { store: { url: redis.url }, ...config },
    });
    open({ close: () => shopward.signalCode ?? shopward.stop() });
    return shopward;
  };
  const { adminUrl } = await start({ workers: 2 });
  const { page } = await openPage(context, stage.browser);
  await page.goto(`${adminUrl}/#/system`);
  const says = (text: string) => page.locator('#processes-about', { hasText: text }).waitFor();
  return { redis, start, page, says };
}

/** What an open console says of replicas and workers that come and go: real processes, a real Redis, a real browser. */
describe.concurrent('what is said of replicas', () => {
  it('a replica that is killed, and one that is drained, are counted for twelve seconds at most, as the page says', async (context) => {
    const { start, page, says } = await staged(context);
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

  it('a worker that is killed leaves the table, and another one takes its place; a store that is away says nothing of others, and one that is back counts them again', async (context) => {
    const { redis, page, says } = await staged(context);
    const pids = () => page.locator('#processes-body th').allTextContents();
    await says('2 of 2 processes serve here.');
    const [gone = '', stays = ''] = await pids();
    process.kill(Number(gone), 'SIGKILL');
    await context.expect.poll(pids, { timeout: 90_000 }).not.toContain(gone);
    await says('2 of 2 processes serve here.');
    expect(await pids()).toContain(stays);
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
});

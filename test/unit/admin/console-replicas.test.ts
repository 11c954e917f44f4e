import { describe, expect, it, type TestContext } from 'vitest';
import { closingAtEnd } from '../../harness/closing-at-end.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import { startShopward } from '../../harness/shopward.ts';
import { openPage, useBrowser } from './console-page.ts';

const stage = useBrowser();

/** Two workers, a store and a page for one test. */
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

/** An open console while replicas and workers come and go: real processes, a real Redis, a real browser. */
describe.concurrent('the system view', () => {
  it('stops counting a replica that was killed and one that was drained', async (context) => {
    const { start, page, says } = await staged(context);
    await says('The store has heard of 2 processes of all replicas in the last 12 s.');
    // Both at once: if either were still counted at the end, the page would say three.
    const [killed, drained] = await Promise.all([start(), start()]);
    await says('The store has heard of 4 processes of all replicas in the last 12 s.');
    await Promise.all([killed.kill(), drained.stop()]);
    // Nothing else on the page changes: this replica goes on.
    await says(
      '2 of 2 processes serve here. The store has heard of 2 processes of all replicas in the last 12 s.',
    );
    // A new store gives no entity tags for a minute, so health may say so.
    expect(await page.locator('#health').textContent()).toMatch(/^ready(, not all well)?$/);
    expect(await page.locator('#silence').isHidden()).toBe(true);
    await page.locator('#tiles article', { hasText: 'Redis, single' }).getByText('well').waitFor();
  });

  it('replaces a killed worker; says so while the store is away, and counts again when it is back', async (context) => {
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

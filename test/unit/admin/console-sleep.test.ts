import type { Page } from 'playwright-core';
import { describe, expect, it, type TestContext } from 'vitest';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { useBrowser, watchAsked } from './console-page.ts';

const stage = useBrowser();

/** Starts a proxy that gets requests from this test only. */
async function startOwn(context: TestContext): Promise<RunningShopward> {
  const shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${stage.upstream.port}`,
    rows: ['GET /orders'],
    config: { mode: 'observe' },
  });
  context.onTestFinished(() => shopward.stop());
  return shopward;
}

/** Opens the page with a stopped clock, which the test advances, and records its requests to the admin port. */
async function openPage(context: TestContext, shopward: RunningShopward, view: string) {
  const page = await stage.browser.newPage();
  context.onTestFinished(() => page.close());
  page.setDefaultTimeout(90_000);
  await page.clock.install();
  // Before its first request: its deadlines use this clock, too.
  await page.clock.pauseAt(Date.now() + 60_000);
  const { asked, quiet } = watchAsked(page);
  await page.goto(`${shopward.adminUrl}/#/${view}`);
  await page.locator('#health', { hasText: 'ready' }).waitFor();
  return { page, asked, quiet, states: () => asked.filter((place) => place === '/api/state').length };
}

/** Simulates the events of a page that goes to the background or comes back. */
async function show(page: Page, isVisible: boolean): Promise<void> {
  const state = isVisible ? 'visible' : 'hidden';
  await page.evaluate(`
    Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${!isVisible} });
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${state}' });
    document.dispatchEvent(new Event('visibilitychange'));`);
}

/** A tab that stays open: for hours in the background, or all day in view. */
describe.concurrent('a tab that is left open', () => {
  it('asks a port that is away less and less often, and recovers when it is back', {
    timeout: 180_000,
  }, async (context) => {
    const { page, asked, quiet, states } = await openPage(context, await startOwn(context), 'system');
    await quiet();
    await page.route('**/api/**', (route) => route.abort('connectionrefused'));
    await page.clock.runFor(2_000);
    await page
      .locator('#silence', { hasText: 'The page goes on asking, 30 s after each attempt at the latest.' })
      .waitFor();
    const before = states();
    const pass = async (seconds: number) => {
      // In steps shorter than the deadline of a request, so that each request ends before the clock advances.
      for (let second = 0; second < seconds; second += 5) {
        await page.clock.runFor(5_000);
        await quiet();
      }
    };
    await pass(600);
    // After 4, 8 and 16 seconds, then every 30: some twenty requests in ten minutes instead of three hundred.
    expect(states() - before).toBeLessThanOrEqual(24);
    expect(states() - before).toBeGreaterThanOrEqual(15);
    // Only the state is requested meanwhile.
    expect(asked.slice(-10).every((place) => place === '/api/state')).toBe(true);
    await page.unroute('**/api/**');
    await pass(30);
    await page.locator('#silence').waitFor({ state: 'hidden' });
  });

  it.for(['frozen', 'throttled'] as const)(
    'sends nothing while it is %s for an hour, and refreshes once when it is shown again',
    { timeout: 180_000 },
    async (how, context) => {
      const shopward = await startOwn(context);
      const { page, asked, quiet, states } = await openPage(context, shopward, 'now');
      await page.locator('#chart-outcomes canvas').waitFor();
      await quiet();
      const cdp = await page.context().newCDPSession(page);
      await show(page, false);
      const before = asked.length;
      if (how === 'frozen') await cdp.send('Page.setWebLifecycleState', { state: 'frozen' });
      // Requests come, and an hour passes for the timers of the page.
      for (let i = 0; i < 5; i++) await (await fetch(`${shopward.url}/while-${how}-${i}`)).arrayBuffer();
      await context.expect
        .poll(async () => {
          const reply = await fetch(`${shopward.adminUrl}/api/decisions/search?path=while-${how}`);
          return ((await reply.json()) as { found: number }).found;
        })
        .toBe(5);
      if (how === 'frozen') await cdp.send('Page.setWebLifecycleState', { state: 'active' });
      await page.clock.fastForward('01:00:00');
      await quiet();
      expect(asked.slice(before)).toEqual([]);
      const stateBefore = states();
      await show(page, true);
      const reply = await fetch(`${shopward.adminUrl}/api/state`);
      const { total } = (await reply.json()) as { total: { requests: number } };
      await page
        .locator('#totals div', { hasText: 'requests in' })
        .getByText(String(total.requests), { exact: true })
        .waitFor();
      await quiet();
      expect(states() - stateBefore).toBe(1);
      expect(asked.slice(before).toSorted()).toEqual(['/api/series', '/api/state']);
    },
  );
});

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { startChromium } from '../../harness/chromium.ts';
import { findAxeFaults } from './accessibility.ts';
import { openPage } from './console-page.ts';
import { ConsoleStage, consoleStates, filled, views } from './console-states.ts';

/** Each state of the first screen, in a real browser. */
describe.concurrent('the first screen', () => {
  let browser: Browser;
  let shop: DemoShop;

  beforeAll(async () => {
    [browser, shop] = await Promise.all([startChromium(), startDemoShop()]);
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  // Reversed: the last one takes longest.
  it.for(consoleStates.toReversed())(
    'shows the state: $name',
    { timeout: 600_000 },
    async ({ name, make, again, sentence, status }, context) => {
      const stage = new ConsoleStage(shop);
      context.onTestFinished(() => stage.stop());
      await make(stage);
      const repeated = setInterval(() => void again?.(stage).catch(() => {}), 10_000);
      context.onTestFinished(() => clearInterval(repeated));
      const { page } = await openPage(context, browser);
      await page.goto(`${stage.shopward.adminUrl}/#/system`);
      await page.locator('#announcement', { hasText: sentence }).waitFor({ state: 'attached' });
      await page.goto(`${stage.shopward.adminUrl}/#/now`);
      await page.locator(`#sentence[data-status="${status}"]`).waitFor();
      const said = await page.locator('#sentence .say').textContent();
      expect(said?.replace(/^(well|down|degraded) /, '')).toMatch(sentence);
      // Observed requests must not look protected.
      expect(await page.locator('#mode').isVisible()).toBe(name === 'observe');
      if (name === 'observe') expect(await page.locator('#mode').textContent()).toBe('nothing is enforced');
      if (status === 'down' || status === 'degraded') {
        const concern = page.locator('#sentence');
        expect(await concern.textContent()).toMatch(/Since .* ago|Since .* just now/);
        expect(await concern.textContent()).toMatch(/Next: .{30}/);
        const links = concern.locator('a');
        expect(await links.first().getAttribute('href')).toMatch(/^#\/(requests|list|system|roll-out)/);
        const [runbook] = await Promise.all([page.waitForEvent('popup'), links.last().click()]);
        await runbook.locator(':target').waitFor();
        await runbook.close();
      }
      if (name === 'observe') {
        await show(page, 'roll-out');
        expect(await page.locator('#roll-out-sentence').textContent()).toMatch(
          /^Not safe to enforce: requests would be refused\..* 2 would refuse requests, \d+ not known yet\. Of these requests 12 need a change of a client, 0 of a setting, \d+ of either\. Counted without a gap since /,
        );
        const refused = page.locator('#roll-out-list tr', { hasText: 'access-token-invalid' }).first();
        await context.expect
          .poll(() => refused.textContent())
          .toMatch(/access-token-invalid \(malformed\)Since .*, last seen .*node/);
        // The sum over seven days, because midnight may have passed.
        const [, days = ''] = /12((?:\d+, ){6}\d+) today/.exec((await refused.textContent()) ?? '') ?? [];
        expect(days.split(', ').reduce((sum, times) => sum + Number(times), 0)).toBe(12);
        await show(page, 'now');
      }
      // Checks all views in the best and the worst state; in the others, only views that differ.
      const isWhole = name === 'healthy' || name === 'two things';
      for (const view of isWhole ? views : ['now', 'roll-out']) {
        for (const width of [1280, 360]) {
          await page.setViewportSize({ width, height: width === 360 ? 740 : 900 });
          await show(page, view);
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme });
            expect(
              await page.evaluate('document.documentElement.scrollWidth'),
              `${view} ${width}`,
            ).toBeLessThanOrEqual(width);
            // Running all rules takes long, so each view is checked with them once, where it shows most.
            const isFullest = name === (view === 'roll-out' ? 'observe' : 'two things');
            const isWhole = isFullest && width === 1280 && colorScheme === 'light';
            const faults = await findAxeFaults(page, isWhole ? 'all' : 'colours');
            expect(faults, `${view} ${width} ${colorScheme}`).toEqual([]);
          }
        }
      }
    },
  );
});

async function show(page: Page, view: string): Promise<void> {
  await page.locator(`nav [data-view="${view}"]`).click();
  await page.locator(`#view-${view}`).waitFor();
  await page
    .locator(filled[view] ?? 'main')
    .first()
    .waitFor();
}

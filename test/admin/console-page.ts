import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, type TestContext } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { complaintsOf, startChromium } from '../harness/chromium.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { type HereOptions, startShopwardHere } from '../harness/shopward-here.ts';
import { filled } from './console-states.ts';

let browser: Browser;
/** Set by the hooks of `useConsole`. */
export let shop: DemoShop;
/** For those that neither edit its list nor mind what others ask it. */
let shared: RunningShopward;

/** What the tests start in front of the demo shop. */
export const settings = (config: object = {}) => ({
  upstream: shop.url,
  config: {
    admin: { edit: true },
    auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
    ...config,
  },
});

/** One browser, one demo shop and one shopward for the tests of a file, which may run side by side. */
export function useConsole(): void {
  beforeAll(async () => {
    [browser, shop] = await Promise.all([startChromium(), startDemoShop()]);
    shared = await startShopwardHere(settings());
  });
  afterAll(async () => {
    await browser?.close();
    await shared?.stop();
    await shop?.close();
  });
}

/** A page of one test, in which nothing went wrong by its end but what was forgiven. */
export async function openPage(context: TestContext, browser: Browser) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(120_000);
  const complaints = complaintsOf(page);
  context.onTestFinished(async () => {
    await page.close();
    // A violation of the policy is an error in the log of the browser.
    expect(complaints).toEqual([]);
  });
  return {
    page,
    /** Complaints so far that contain `text` are no fault of the page. */
    forgive(text: string): void {
      const others = complaints.filter((complaint) => !complaint.includes(text));
      complaints.splice(0, complaints.length, ...others);
    },
  };
}

/** A page of this test alone, and, where it is given options, a shopward that nobody else asks anything. */
export async function openConsole(context: TestContext, own?: HereOptions) {
  const shopward = own === undefined ? shared : await startShopwardHere(own);
  if (own !== undefined) context.onTestFinished(() => shopward.stop());
  // The page is closed before what it asks.
  const { page, forgive } = await openPage(context, browser);
  return {
    shopward,
    page,
    forgive,
    async open(place = 'now', url = shopward.adminUrl): Promise<void> {
      await page.goto(`${url}/#/${place}`);
      await page
        .locator(filled[place.split('?')[0] ?? ''] ?? 'main')
        .first()
        .waitFor();
    },
    decisions: () => page.locator('#decisions > li'),
  };
}

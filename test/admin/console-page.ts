import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { complaintsOf, startChromium } from '../harness/chromium.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';
import { filled } from './console-states.ts';

let browser: Browser;
/** Set before each test by the hooks of `useConsole`; so are the ones below. */
export let page: Page;
export let shop: DemoShop;
export let shopward: RunningShopward;
let complaints: string[];

/** What the tests start in front of the demo shop. */
export const settings = (config: object = {}) => ({
  upstream: shop.url,
  config: {
    admin: { edit: true },
    auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
    ...config,
  },
});

export const start = (config?: object) => startShopwardHere(settings(config));

/** A new page of one browser for each test of a file, and one shopward for them all. */
export function useConsole(): void {
  beforeAll(async () => {
    [browser, shop] = await Promise.all([startChromium(), startDemoShop()]);
    shopward = await start();
  });
  afterAll(async () => {
    await browser?.close();
    await shopward?.stop();
    await shop?.close();
  });

  beforeEach(async () => {
    page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.setDefaultTimeout(120_000);
    complaints = complaintsOf(page);
  });
  /** A violation of the policy is an error in the log of the browser. */
  afterEach(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });
}

/** Complaints so far that contain `text` are no fault of the page. */
export function forgive(text: string): void {
  const others = complaints.filter((complaint) => !complaint.includes(text));
  complaints.splice(0, complaints.length, ...others);
}

export async function open(place = 'now', url = shopward.adminUrl): Promise<void> {
  await page.goto(`${url}/#/${place}`);
  await page
    .locator(filled[place.split('?')[0] ?? ''] ?? 'main')
    .first()
    .waitFor();
}

export const decisions = () => page.locator('#decisions > li');

import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { startChromium } from '../harness/chromium.ts';
import { startRedis } from '../harness/redis-processes.ts';
import { freePort } from '../harness/redis-server.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { findAccessibilityFaults } from './accessibility.ts';

/** `PICTURES=folder` keeps what was seen, so that somebody can look at it. */
const pictures = process.env.PICTURES;

/** The first screen in each state that it has to tell apart, in a real browser, as an operator would meet it. */
describe('the first screen', () => {
  let browser: Browser;
  let shop: DemoShop;
  let shopward: Shopward | undefined;
  const ends: (() => Promise<unknown>)[] = [];

  const start = async (config: object = {}, upstream = shop.url) => {
    shopward = await startShopward({
      upstream,
      config: {
        admin: { edit: true },
        auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
        ...config,
      },
    });
    return shopward;
  };
  const ask = async (target: string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${shopward?.url}${target}`, { headers });
    await response.arrayBuffer();
  };
  const traffic = async (times: number) => {
    const token = await shop.issueTokenFor('DE--1');
    for (let i = 0; i < times; i++) {
      await ask(`/abstract-products/${i}`);
      await ask('/carts', { Authorization: `Bearer ${token}` });
      if (i % 10 === 0) await ask('/orders');
    }
  };

  beforeAll(async () => {
    [browser, shop] = await Promise.all([startChromium(), startDemoShop()]);
    if (pictures !== undefined) await mkdir(pictures, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.close();
  });

  const states: readonly (readonly [
    name: string,
    make: () => Promise<void>,
    sentence: RegExp,
    status: string,
  ])[] = [
    [
      'new',
      async () => void (await start()),
      /^Ready, and waiting for the first request\. 56 rows enforced\.$/,
      'ok',
    ],
    [
      'healthy',
      async () => {
        await start();
        await traffic(40);
      },
      /^All is well\. 56 rows enforced\.$/,
      'ok',
    ],
    [
      'attack',
      async () => {
        await start();
        await traffic(10);
        for (let i = 0; i < 200; i++) await ask(`/orders/DE--${i}`, { Authorization: 'Bearer abc' });
      },
      /^Serving, but most requests are refused: \d\d % of the last 5 minutes$/,
      'degraded',
    ],
    [
      'shop down',
      async () => {
        await start({}, `http://127.0.0.1:${await freePort()}`);
        for (let i = 0; i < 20; i++) await ask(`/abstract-products/${i}`);
      },
      /^The shop does not answer$/,
      'down',
    ],
    [
      'Redis down',
      async () => {
        const redis = await startRedis();
        await start({ store: { url: redis.url } });
        await traffic(10);
        await redis.close();
        await ask('/carts', { Authorization: `Bearer ${await shop.issueTokenFor('DE--1')}` });
      },
      /^Redis cannot be used$/,
      'down',
    ],
    [
      'observe',
      async () => {
        await start({ mode: 'observe' });
        await traffic(30);
        for (let i = 0; i < 12; i++) await ask('/orders/DE--1001', { Authorization: 'Bearer abc' });
      },
      /^All is well\. Observe mode: nothing is enforced\.$/,
      'notice',
    ],
  ];

  it.each(states)('says what is so: %s', async (name, make, sentence, status) => {
    await make();
    const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
    page.setDefaultTimeout(60_000);
    const complaints: string[] = [];
    page.on('pageerror', (fault) => complaints.push(String(fault)));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    await page.goto(`${shopward?.adminUrl}/`);
    await page.locator(`#sentence[data-status="${status}"]`).waitFor();
    const said = await page.locator('#sentence .say').textContent();
    expect(said?.replace(/^(well|not well|degraded) /, '')).toMatch(sentence);
    expect(await page.locator('#announcement').textContent()).toMatch(sentence);
    if (status === 'down' || status === 'degraded') {
      const concern = page.locator('#concerns li').first();
      expect(await concern.textContent()).toMatch(/since .* ago|since .* just now/);
      expect(await concern.textContent()).toMatch(/Next: .{30}/);
      expect(await concern.locator('a').getAttribute('href')).toMatch(/^#\/(requests|list|system|roll-out)/);
    }
    if (name === 'observe') {
      await show(page, 'roll-out');
      expect(await page.locator('#roll-out-sentence').textContent()).toMatch(
        /^Not safe to enforce: somebody would be refused\..* 2 would refuse somebody, \d+ not known yet\. Counted without a gap since/,
      );
      const refused = page.locator('#roll-out-list li', { hasText: 'access-token-invalid' }).first();
      await expect
        .poll(() => refused.textContent())
        .toMatch(/: access-token-invalid12 requests, of 1 client, since/);
      expect(await refused.textContent()).toMatch(/the last seven days: 0, 0, 0, 0, 0, 0, 12 \(today\)/);
      await show(page, 'now');
    }
    await page.waitForTimeout(300);
    // Every view where nothing is wrong and where most is; elsewhere the first one is what differs.
    const isWhole = pictures !== undefined || name === 'healthy' || name === 'Redis down';
    for (const view of isWhole ? ['now', 'requests', 'list', 'roll-out', 'system'] : ['now', 'roll-out']) {
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: width === 360 ? 740 : 900 });
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme });
          await show(page, view);
          expect(
            await page.evaluate('document.documentElement.scrollWidth'),
            `${view} ${width}`,
          ).toBeLessThanOrEqual(width);
          expect(await findAccessibilityFaults(page), `${view} ${width} ${colorScheme}`).toEqual([]);
          await keepPicture(page, `${name} ${view} ${width} ${colorScheme}`);
        }
      }
    }
    expect(complaints).toEqual([]);
    await page.close();
    await shopward?.stop();
    for (const end of ends.splice(0)) await end();
  });
});

async function show(page: Page, view: string): Promise<void> {
  await page.locator(`nav [data-view="${view}"]`).click();
  await page.locator(`#view-${view}`).waitFor();
  const filled = {
    now: '#totals dd',
    requests: '#search-state:not(:text("loading"))',
    list: '#row-body tr',
    'roll-out': '#roll-out-sentence .say',
    system: '#config-list dt',
  }[view];
  await page
    .locator(filled ?? 'main')
    .first()
    .waitFor();
}

async function keepPicture(page: Page, name: string): Promise<void> {
  if (pictures === undefined) return;
  const file = path.join(pictures, `${name.replaceAll(' ', '-')}.png`);
  await page.screenshot({ path: file, fullPage: true });
}

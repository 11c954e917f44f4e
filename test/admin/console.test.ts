import { readFile, writeFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { startChromium } from '../harness/chromium.ts';
import { freePort } from '../harness/redis-server.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { findAccessibilityFaults } from './accessibility.ts';

/** The page in a real Chromium, on the real proxy, in front of the demo shop. */
describe('the console', () => {
  let browser: Browser;
  let shop: DemoShop;
  let shopward: Shopward;
  let page: Page;
  let complaints: string[];
  const token = 'a-token-for-operators';

  const start = (config: object = {}) =>
    startShopward({
      upstream: shop.url,
      config: {
        admin: { edit: true },
        auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
        ...config,
      },
    });
  const open = async (url = shopward.adminUrl) => {
    await page.goto(`${url}/`);
    await page.locator('#totals dd').first().waitFor();
  };

  const openEditor = async () => {
    await page.getByRole('button', { name: 'Open the file' }).click();
    await page.getByLabel('Text of the list').waitFor();
  };

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
    complaints = [];
    page.on('pageerror', (fault) => complaints.push(String(fault)));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('dialog', (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
  });
  /** A violation of the policy is an error in the log of the browser. */
  afterEach(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });

  describe('live decisions', () => {
    it('show a refused request with its reason, and the row counts it', async () => {
      await open();
      await fetch(`${shopward.url}/orders/DE--1001`, { headers: { Authorization: 'Bearer abc' } });
      const item = page.locator('#decision-rows li').first();
      await item.getByText('refused: access-token-invalid (malformed)').waitFor();
      expect(await item.textContent()).toContain('GET /orders/DE--1001');
      expect(await item.textContent()).toContain('row /orders/{order_id}');
      await page.locator('#row-search').fill('orders/{order_id}');
      await page.locator('#row-body tr', { hasText: '1 access-token-invalid' }).waitFor();
    });

    it('can be filtered and paused', async () => {
      await open();
      await fetch(`${shopward.url}/abstract-products/134`);
      await fetch(`${shopward.url}/wishlists`);
      const items = page.locator('#decision-rows li:visible');
      await items.filter({ hasText: '/wishlists' }).first().waitFor();
      await page.getByLabel('Show').first().selectOption('refused');
      expect(await items.filter({ hasText: 'abstract-products' }).count()).toBe(0);
      expect(await items.filter({ hasText: '/wishlists' }).count()).toBeGreaterThan(0);
      await page.getByLabel('Filter').fill('no such thing');
      await page.getByText('No decision fits the filter.').waitFor();
      await page.getByLabel('Filter').fill('');

      await page.getByRole('button', { name: 'Pause' }).click();
      const before = await items.count();
      await fetch(`${shopward.url}/returns`);
      await page.locator('#decision-state', { hasText: '1 new decision' }).waitFor();
      expect(await items.count()).toBe(before);
      await page.getByRole('button', { name: 'Go on', pressed: true }).click();
      await items.filter({ hasText: '/returns' }).first().waitFor();
    });

    it('show what attackers send as text', async () => {
      await open();
      const attack = '<img src=x onerror=alert(1)>';
      await fetch(`${shopward.url}/${encodeURIComponent(attack)}`);
      await fetch(`${shopward.url}/carts/${encodeURIComponent('"><script>alert(2)')}`);
      await page.locator('#decision-rows li', { hasText: 'script' }).first().waitFor();
      await page.getByLabel('Path or URL').fill(`/carts/${attack}`);
      await page.getByRole('button', { name: 'Explain' }).click();
      await page.locator('#explain-result', { hasText: 'onerror' }).waitFor();
      expect(await page.locator('#main img, #main script, #main iframe').count()).toBe(0);
    });

    it('go on after the connection was lost', async () => {
      // Ports that nobody takes while there is no process behind them.
      const ports = { admin: { port: await freePort() }, listen: { port: await freePort() } };
      const other = await start(ports);
      await open(other.adminUrl);
      await other.stop();
      await page.locator('#decision-state', { hasText: 'connection lost' }).waitFor();
      await page.locator('#health', { hasText: 'shopward does not answer' }).waitFor();
      // What the browser says of connections that were refused is no fault of the page.
      complaints = complaints.filter((text) => !text.includes('net::ERR'));
      const again = await start(ports);
      await page.locator('#decision-state', { hasText: 'live' }).waitFor();
      await fetch(`${again.url}/orders`);
      await page.locator('#decision-rows li', { hasText: 'access-token-missing' }).first().waitFor();
      await page.goto('about:blank');
      await again.stop();
      complaints = complaints.filter((text) => !text.includes('net::ERR'));
    });
  });

  it('searches the list', async () => {
    await open();
    const rows = page.locator('#row-body tr');
    await page.getByText('56 rows of 56').waitFor();
    await page.getByLabel('Search').fill('delete wishlist-items');
    await page.getByText('1 row of 56').waitFor();
    expect(await rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain('/wishlists/{wishlist_id}/wishlist-items/');
    await page.getByLabel('Search').fill('no such row');
    await page.getByText('0 rows of 56').waitFor();
    await page.getByLabel('Search').fill('');
    await page.locator('#row-kind').selectOption('unmet');
    await page.locator('#row-body tr', { hasText: 'never' }).first().waitFor();
  });

  it.each([
    ['GET', '/carts/1', 'Protected', 'GET /carts/{cart_id}'],
    ['GET', 'https://shop.example/Carts/1?x=1', 'Protected', 'GET /carts/{cart_id}'],
    ['GET', '/catalog-search?q=x', 'Open', 'no row'],
    ['GET', '/url-resolver?url=/en/x', 'Answered by shopward', 'URL resolver'],
    ['GET', '/a/%2e%2e/b', 'Refused', '400'],
  ])('explains %s %s: %s', async (method, url, verdict, text) => {
    await open();
    await page.getByLabel('Method').selectOption(method);
    await page.getByLabel('Path or URL').fill(url);
    await page.getByLabel('Path or URL').press('Enter');
    await page.locator('#explain-result .pill', { hasText: verdict }).waitFor();
    expect(await page.locator('#explain-result').textContent()).toContain(text);
  });

  it('shows what is wrong with an edit, with its place, until it is mended', async () => {
    await open();
    const good = await readFile(shopward.listFile, 'utf8');
    await writeFile(shopward.listFile, good.replace('    - GET /orders\n', '    - FETCH /orders\n'));
    const line = good.split('\n').indexOf('    - GET /orders') + 1;
    const banner = page.locator('#problems');
    await banner.getByText(`${shopward.listFile}:${line}:7`).waitFor();
    await banner.getByText('error: an unknown method').waitFor();
    await page.locator('#health', { hasText: 'remark' }).waitFor();
    await writeFile(shopward.listFile, good);
    await banner.waitFor({ state: 'hidden' });
  });

  describe('the editor', () => {
    const textarea = () => page.getByLabel('Text of the list');
    const save = () => page.getByRole('button', { name: 'Save', exact: true });
    const check = () => page.getByRole('button', { name: 'Check and show' }).click();

    it('checks, shows the difference, asks for consent where routes open, and saves', async () => {
      await open();
      const before = await readFile(shopward.listFile, 'utf8');
      await openEditor();
      expect(await textarea().inputValue()).toBe(before);
      expect(await save().isDisabled()).toBe(true);

      await textarea().fill(before.replace('    - GET /returns\n', '    - GET /gift-cards/{id}\n'));
      await check();
      const result = page.getByRole('region', { name: 'Result of the check' });
      await result.locator('.difference.removed', { hasText: 'GET /returns' }).waitFor();
      await result.locator('.difference.added', { hasText: 'GET /gift-cards/{id}' }).waitFor();
      expect(await result.locator('.diff.removed').textContent()).toBe('-     - GET /returns\n');
      expect(await result.locator('.diff.added').textContent()).toBe('+     - GET /gift-cards/{id}\n');
      expect(await save().isDisabled()).toBe(true);
      expect(await readFile(shopward.listFile, 'utf8')).toBe(before);

      await page.getByLabel('1 route will be protected less than now').check();
      await save().click();
      await page.locator('#notice', { hasText: 'Saved: 56 rows, 1 added, 1 removed' }).waitFor();
      await page.getByLabel('Search').fill('gift-cards');
      await page.getByText('1 row of 56').waitFor();
      expect((await fetch(`${shopward.url}/gift-cards/1`)).status).toBe(401);
      await writeFile(shopward.listFile, before);
      await page.getByText('0 rows of 56').waitFor();
    });

    it('saves nothing with a mistake, and leads to it', async () => {
      await open();
      const before = await readFile(shopward.listFile, 'utf8');
      await openEditor();
      await textarea().fill(before.replace('    - GET /returns\n', '    - GET returns\n'));
      await check();
      const mistakes = page.locator('#edit-result .banner.bad');
      await mistakes.getByText('a row is a method or ANY, one space, and a path').waitFor();
      expect(await save().isDisabled()).toBe(true);
      await mistakes
        .getByRole('button', { name: /go to line/ })
        .first()
        .click();
      const chosen = await page.evaluate(
        '(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))(document.activeElement)',
      );
      expect(chosen).toBe('GET returns');
      expect(await readFile(shopward.listFile, 'utf8')).toBe(before);
    });

    it('forgets the check when the text changes, and saves nothing over somebody else’s edit', async () => {
      await open();
      const before = await readFile(shopward.listFile, 'utf8');
      await openEditor();
      await textarea().fill(before.replace(/^complete: true/m, '# mine\ncomplete: true'));
      await check();
      await page.getByText('No route is protected differently.').waitFor();
      expect(await save().isEnabled()).toBe(true);
      await textarea().press('End');
      await textarea().pressSequentially(' ');
      expect(await save().isDisabled()).toBe(true);
      await check();
      await page.locator('#edit-save:enabled').waitFor();
      const theirs = `# theirs\n${before}`;
      await writeFile(shopward.listFile, theirs);
      await save().click();
      await page.getByRole('alert').filter({ hasText: 'the file changed meanwhile' }).waitFor();
      expect(await readFile(shopward.listFile, 'utf8')).toBe(theirs);
      await writeFile(shopward.listFile, before);
      complaints = complaints.filter((text) => !text.includes('412'));
    });
  });

  describe('with a token, in observe mode, without the editor', () => {
    let guarded: Shopward;
    beforeAll(async () => {
      guarded = await start({ mode: 'observe', admin: { token } });
    });
    afterAll(() => guarded?.stop());

    it('asks for the token once, keeps it in the tab, and warns loudly', async () => {
      await page.goto(`${guarded.adminUrl}/`);
      const dialog = page.getByRole('dialog', { name: 'Admin token' });
      await dialog.getByLabel('Token').fill('wrong');
      await dialog.getByLabel('Token').press('Enter');
      await dialog.getByText('That token was not accepted.').waitFor();
      await dialog.getByLabel('Token').fill(token);
      await dialog.getByRole('button').click();
      await page.locator('#totals dd').first().waitFor();
      const banner = page.getByRole('region', { name: 'Observe mode' });
      await banner.getByText('Observe mode: nothing is enforced').waitFor();
      await fetch(`${guarded.url}/orders`);
      await page.getByText('would have been access-token-missing').waitFor();
      expect(await page.locator('#edit').isVisible()).toBe(false);

      await page.reload();
      await page.locator('#totals dd').first().waitFor();
      expect(await dialog.isVisible()).toBe(false);
      expect(await page.evaluate('localStorage.length')).toBe(0);
      // The browser names every 401 in its log.
      complaints = complaints.filter((text) => !text.includes('401'));
    });
  });

  it('is of use without a mouse', async () => {
    await open();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    const visited: string[] = [];
    const unmarked: string[] = [];
    for (let i = 0; i < 10; i++) {
      await page.keyboard.press('Tab');
      visited.push(await page.evaluate('document.activeElement.id || document.activeElement.className'));
      const ring = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
      if (ring === 'none') unmarked.push(visited.at(-1) ?? '');
    }
    expect(unmarked).toEqual([]);
    expect(visited).toEqual([
      'decision-search',
      'decision-kind',
      'decision-pause',
      'scroll',
      'explain-method',
      'explain-url',
      'explain-submit',
      'row-search',
      'row-kind',
      'edit-open',
    ]);
    await page.locator('#decision-pause').focus();
    await page.keyboard.press('Space');
    expect(await page.locator('#decision-pause').getAttribute('aria-pressed')).toBe('true');
  });

  describe.each(['light', 'dark'] as const)('in %s', (colorScheme) => {
    it.each([
      ['a desk', 1280],
      ['a phone', 360],
      ['a small phone', 320],
    ])('fits %s and has no fault of accessibility', async (_, width) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await open();
      await fetch(`${shopward.url}/orders`);
      await fetch(`${shopward.url}/${'long-'.repeat(15)}/${'x'.repeat(79)}`);
      await page.locator('#decision-rows li', { hasText: 'long-' }).first().waitFor();
      await page.getByLabel('Path or URL').fill('/carts/1');
      await page.getByLabel('Path or URL').press('Enter');
      await page.locator('#explain-result .pill').waitFor();
      await openEditor();
      await page.getByLabel('Text of the list').fill('groups:\n  A:\n    - GET /a\ncomplete: true\n');
      await page.getByRole('button', { name: 'Check and show' }).click();
      await page.locator('#edit-consent').waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      expect(await findAccessibilityFaults(page)).toEqual([]);
      const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(colorScheme === 'dark' ? 'rgb(15, 19, 24)' : 'rgb(244, 245, 247)');
    });
  });
});

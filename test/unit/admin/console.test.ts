import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../harness/free-port.ts';
import { startShopward } from '../../harness/shopward.ts';
import { openConsole, settings, useConsole } from './console-page.ts';

/** The page in a real Chromium, in front of the demo shop: requests, explanations and charts. */
describe.concurrent('the console', () => {
  useConsole();

  /** Advances the page's clock (`page.clock.install`) until it has refreshed and drawn once more. */
  const nextRound = async (page: Page, idle: () => Promise<void>) => {
    // The deadlines of the page use that clock, too.
    await idle();
    await page.clock.runFor(2_000);
    await idle();
    // Waits two frames, in which the heading would move.
    await page.locator('h1').hover({ trial: true });
  };

  describe('requests', () => {
    it('appear by themselves, and one click explains them', async (context) => {
      const { decisions, open, page, idle, shopward } = await openConsole(context);
      await page.clock.install();
      await open('requests');
      await fetch(`${shopward.url}/orders/DE--1001`, { headers: { Authorization: 'Bearer abc' } });
      const item = decisions().filter({ hasText: 'GET /orders/DE--1001' }).first();
      await item.getByText('refused: access-token-invalid (malformed)').waitFor();
      await item.getByRole('button').click();
      await item.getByText('malformed: ').waitFor();
      expect(await item.textContent()).toMatch(/send it as issued\.docs\/reasons\.md#malformed/);
      await item.locator('.pill', { hasText: 'Protected' }).waitFor();
      expect(await item.locator('.detail').textContent()).toContain('GET /orders/{order_id}');
      expect(await item.getByRole('button').getAttribute('aria-expanded')).toBe('true');
      // Nothing moves while a decision is open.
      await page.getByRole('button', { name: 'Follow again' }).waitFor();
      const lines = page.locator('#decisions .line');
      const before = await lines.allTextContents();
      await fetch(`${shopward.url}/orders/DE--1002`);
      await nextRound(page, idle);
      expect(await lines.allTextContents()).toEqual(before);
      await page.getByRole('button', { name: 'Follow again' }).click();
      await decisions().filter({ hasText: 'DE--1002' }).first().waitFor();
    });

    it.for([
      ['reason=access-token-invalid', 'search-token', '/wishlists'],
      ['path=search-token', 'search-token', '/wishlists'],
      ['row=%2Fcarts%2F%7Bcart_id%7D', '/carts/search-token', '/wishlists'],
      ['outcome=passed', 'abstract-products', '/wishlists'],
      ['q=search-token', 'search-token', 'abstract-products'],
    ] as const)('are found by their address: %s', async ([query, there, absent], context) => {
      const { decisions, open, shopward } = await openConsole(context);
      await fetch(`${shopward.url}/carts/search-token`, { headers: { Authorization: 'Bearer abc' } });
      await fetch(`${shopward.url}/abstract-products/134`);
      await fetch(`${shopward.url}/wishlists`);
      await open(`requests?${query}`);
      await decisions().filter({ hasText: there }).first().waitFor();
      expect(await decisions().filter({ hasText: absent }).count()).toBe(0);
    });

    it('are found by form, by id, and by common values', async (context) => {
      const { decisions, open, page, shopward } = await openConsole(context);
      await fetch(`${shopward.url}/abstract-products/134`);
      const response = await fetch(`${shopward.url}/returns`);
      const id = response.headers.get('x-request-id') ?? 'none';
      await open('requests');
      await page.getByText('One field only').click();
      await page.getByLabel('Request id').fill(id);
      await page.getByLabel('Request id').press('Enter');
      await page.waitForURL((url) => url.hash.includes(`id=${id}`));
      await page.getByText('1 decision of the last').waitFor();
      await context.expect.poll(() => page.locator('#search-said').textContent()).toBe('1 decision found');
      await context.expect.poll(() => decisions().count()).toBe(1);
      await page.getByLabel('Request id').fill('no such id');
      await page.getByRole('button', { name: 'Search', exact: true }).click();
      await page
        .getByText(
          /^None of the last [\d,]+ decisions kept since .* matches\. Older ones .*paste the line into/,
        )
        .waitFor();
      // As copied from a response or an address line.
      for (const pasted of [`X-Request-Id: ${id}`, `https://shop.example/returns?include=items`]) {
        await open('requests');
        await page.getByLabel('Search decisions').fill(pasted);
        await page.getByLabel('Search decisions').press('Enter');
        // All decisions are listed at first, so the others must disappear.
        await context.expect.poll(() => decisions().filter({ hasNotText: 'GET /returns' }).count()).toBe(0);
        await decisions().first().waitFor();
      }

      await open('requests?q=returns');
      await fetch(`${shopward.url}/returns`);
      await page.locator('.chip', { hasText: 'access-token-missing' }).click();
      await page.waitForURL(/q=returns&reason=access-token-missing/);
      const reason = page.getByLabel('Reason', { exact: true });
      await context.expect.poll(() => reason.inputValue()).toBe('access-token-missing');
    });
  });

  it.for([
    ['GET', '/carts/1', 'Protected', 'GET /carts/{cart_id}'],
    ['GET', 'https://shop.example/Carts/1?x=1', 'Protected', 'GET /carts/{cart_id}'],
    ['GET', '/catalog-search?q=x', 'Open', 'no row'],
    ['GET', '/url-resolver?url=/en/x', 'Answered by shopward', 'URL resolver'],
    ['GET', '/a/%2e%2e/b', 'Refused', '400'],
  ] as const)('explains %s %s: %s', async ([method, url, verdict, text], context) => {
    const { open, page } = await openConsole(context);
    await open('requests');
    await page.getByText('Explain a request').click();
    await page.getByLabel('Method').selectOption(method);
    await page.locator('#explain-url').fill(url);
    await page.locator('#explain-url').press('Enter');
    await page.locator('#explain-result .pill', { hasText: verdict }).waitFor();
    expect(await page.locator('#explain-result').textContent()).toContain(text);
  });

  it('explains a HAR file, whose answers stay in the tab', async (context) => {
    const { open, page } = await openConsole(context);
    const headers = [
      { name: 'Authorization', value: 'Bearer not-a-token' },
      { name: 'Content-Type', value: 'application/vnd.api+json' },
    ];
    const url = 'https://shop.example/carts/1?include=items';
    const request = { method: 'PATCH', url, headers, postData: { text: '{"name":"it\'s <b> é"}' } };
    const response = { status: 401, content: { text: 'x'.repeat(60_000) } };
    await open('requests');
    await page.getByText('Explain a request').click();
    await page.locator('#explain-url').fill(JSON.stringify({ log: { entries: [{ request, response }] } }));
    const [sent] = await Promise.all([
      page.waitForRequest('**/api/explain'),
      page.getByRole('button', { name: 'Explain', exact: true }).click(),
    ]);
    expect(sent.postData()).not.toContain('xxxxxxxxxx');
    await page.locator('#explain-result .pill', { hasText: 'Protected' }).waitFor();
    const result = await page.locator('#explain-result').textContent();
    expect(result).toContain('PATCH /carts/1?include=items');
    expect(result).toContain('401 code 001: Invalid access token. (malformed)');
    expect(result).not.toContain('not-a-token');
  });

  it('says that shopward does not answer, and goes on with a new process', async (context) => {
    const { decisions, forgive, open, page } = await openConsole(context);
    // Ports that no other process gets while shopward is down.
    const ports = { admin: { port: await freePort() }, listen: { port: await freePort() } };
    const other = await startShopward(settings(ports));
    await fetch(`${other.url}/returns`);
    await open('requests', other.adminUrl);
    await decisions().filter({ hasText: '/returns' }).first().waitFor();
    await other.stop();
    const silence = page.getByRole('alert').filter({ hasText: 'shopward does not answer' });
    await silence.getByText(/The data shown is from \d+ \w+ \d{4}, [\d:]{8} \S+\. Check that/).waitFor();
    expect(await page.locator('#health').textContent()).toBe('no answer');
    // No view may still say that all is well.
    const sentence = page.locator('#sentence[data-status="unknown"]', { hasText: 'does not answer' });
    await sentence.waitFor({ state: 'attached' });
    expect(await page.locator('#announcement').textContent()).toBe('shopward does not answer');
    // The browser logs refused connections; that is no fault of the page.
    forgive('net::ERR');
    // The new process counts from 1 again, and the page reconnects only after it has counted.
    await page.context().setOffline(true);
    const again = await startShopward(settings({ ...ports, mode: 'observe' }));
    await fetch(`${again.url}/orders`);
    await page.context().setOffline(false);
    await page.locator('#health', { hasText: 'ready' }).waitFor();
    await silence.waitFor({ state: 'hidden' });
    await decisions().filter({ hasText: '/orders' }).first().waitFor();
    expect(await decisions().filter({ hasText: '/returns' }).count()).toBe(0);
    await page.getByRole('link', { name: 'System' }).click();
    await page.locator('#processes-body tr').first().waitFor();
    await page.goto('about:blank');
    await again.stop();
    forgive('net::ERR');
  });

  describe('charts', () => {
    const slider = (page: Page, name: string) =>
      page.getByRole('slider', { name: `${name}: values over time` });

    it('show the values of a step under the pointer and by keyboard', async (context) => {
      const { open, page, shopward } = await openConsole(context, settings());
      await fetch(`${shopward.url}/abstract-products/134`);
      await open();
      const requests = page.locator('#chart-outcomes');
      const requestsSlider = slider(page, 'Requests');
      await requests.locator('canvas').waitFor();
      await requests.locator('.moment', { hasText: 'Newest: ' }).waitFor();
      // The last completed step.
      const over = requests.locator('.u-over');
      const { width = 0, height = 0 } = (await over.boundingBox()) ?? {};
      // Polled: a notice above the charts moves them when it appears.
      await context.expect
        .poll(async () => {
          await over.hover({ position: { x: width * 0.9, y: height / 2 } });
          return requests.locator('.moment').textContent();
        })
        .toMatch(/^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/);
      await page.mouse.move(0, 0);
      await requests.locator('.moment', { hasText: 'Newest: ' }).waitFor();

      await requestsSlider.focus();
      await page.keyboard.press('End');
      const last = await requestsSlider.getAttribute('aria-valuetext');
      expect(last).toMatch(
        /^[\d:]{8} to [\d:]{8}, not over yet: passed [\d.]+\/s, would be refused 0\/s, refused [\d.]+\/s, failed [\d.]+\/s$/,
      );
      // The chart fills its width: it omits the time before the start, except for a minute.
      expect(Number(await requestsSlider.getAttribute('aria-valuemin'))).toBeGreaterThan(0);
      // Steps before the start are a gap, not zero.
      await page.getByLabel('24 h', { exact: true }).check();
      await requests.locator('figcaption').getByText('in steps of 10 min').waitFor();
      await requestsSlider.focus();
      await page.keyboard.press('Home');
      await context.expect
        .poll(() => requestsSlider.getAttribute('aria-valuetext'))
        .toMatch(/, before the start: passed none, would be refused none, refused none, failed none$/);
      await page.keyboard.press('Escape');
      await requests.locator('.moment', { hasText: 'Newest: ' }).waitFor();
    });
  });

  it('ranks reasons, rows and clients; a reason has the cause and cure from the docs', async (context) => {
    const { open, page, shopward } = await openConsole(context, settings());
    for (const token of ['abc', 'abc', 'a.b.c'])
      await fetch(`${shopward.url}/orders`, { headers: { Authorization: `Bearer ${token}` } });
    await open();
    const reason = page.locator('#now-reasons tr', { hasText: 'access-token-invalid (malformed)' });
    const cure = /^The token is not three parts of base64url with JSON: send it as issued\./;
    await reason.locator('+ tr').getByText(cure).waitFor();
    await page.locator('#now-rows tr', { hasText: 'GET /orders' }).getByText('100 %').waitFor();
    await page.locator('#now-clients tr', { hasText: '127.0.0.1' }).getByText('3', { exact: true }).waitFor();
    await page.locator('#now-marks tr', { hasText: 'shopward started' }).waitFor();
    await reason.getByRole('link').click();
    await page.locator('#reason-about').getByText('The token is not three parts').waitFor();
    await page.locator('#decisions > li', { hasText: '127.0.0.1' }).first().waitFor();
  });

  describe('with a token, in observe mode', () => {
    const token = 'a-token-for-operators';

    it('asks for the token once, keeps it in the tab, and says that nothing is enforced', async (context) => {
      const { forgive, page, shopward } = await openConsole(
        context,
        settings({ mode: 'observe', admin: { token } }),
      );
      await page.goto(`${shopward.adminUrl}/`);
      const dialog = page.getByRole('dialog', { name: 'Admin token' });
      await dialog.waitFor();
      // No key closes the dialog, and a token that no header field can carry is not accepted.
      for (const _ of [1, 2, 3]) await page.keyboard.press('Escape');
      await dialog.getByLabel('Token').fill('“wrong”');
      await dialog.getByLabel('Token').press('Enter');
      await dialog.getByText('A token consists of ASCII letters, digits and punctuation').waitFor();
      await dialog.getByLabel('Token').fill('wrong');
      await dialog.getByLabel('Token').press('Enter');
      await dialog.getByText('That token is not accepted.').waitFor();
      await dialog.getByLabel('Token').fill(token);
      await dialog.getByRole('button').click();
      await page.locator('#totals dd').first().waitFor();
      await page.locator('#sentence', { hasText: 'Observe mode: nothing is enforced' }).waitFor();
      await fetch(`${shopward.url}/orders`);
      await page.locator('#sentence', { hasText: '1 request would have been refused' }).waitFor();
      // A new count does not take the focus away.
      await page.getByRole('link', { name: 'Is it safe to enforce?' }).focus();
      await fetch(`${shopward.url}/orders`);
      await page.locator('#sentence', { hasText: '2 requests would have been refused' }).waitFor();
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Is it safe to enforce?');
      await page.keyboard.press('Enter');
      await page.getByRole('rowheader', { name: /GET \/orders ?access-token-missing/ }).waitFor();
      await page.getByRole('link', { name: 'Look at these requests' }).click();
      await page.getByText('would be refused: access-token-missing').first().waitFor();
      await page.getByRole('link', { name: 'List' }).click();
      await page.locator('#row-body tr').first().waitFor();
      await page.getByRole('link', { name: 'System' }).click();
      await page.locator('#processes-body tr').first().waitFor();
      await page.getByRole('link', { name: 'Now' }).click();

      await page.reload();
      await page.locator('#totals dd').first().waitFor();
      expect(await dialog.isVisible()).toBe(false);
      expect(await page.evaluate('localStorage.length')).toBe(0);
      // The browser logs every 401.
      forgive('401');
    });
  });
});

import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import { complaintsOf, startChromium } from '../harness/chromium.ts';
import { freePort } from '../harness/free-port.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { findAccessibilityFaults, findAxeFaults } from './accessibility.ts';
import { filled } from './console-states.ts';

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
  const open = async (place = 'now', url = shopward.adminUrl) => {
    await page.goto(`${url}/#/${place}`);
    await page
      .locator(filled[place.split('?')[0] ?? ''] ?? 'main')
      .first()
      .waitFor();
  };
  /** The page's clock (`page.clock.install`) goes on until it has asked once more, and what was answered is drawn. */
  const nextRound = async () => {
    const asked = page.waitForResponse('**/api/state');
    await page.clock.runFor(2_000);
    await (await asked).finished();
    await page.waitForTimeout(500);
  };
  const decisions = () => page.locator('#decisions > li');

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
    complaints = complaintsOf(page);
  });
  /** A violation of the policy is an error in the log of the browser. */
  afterEach(async () => {
    await page.close();
    expect(complaints).toEqual([]);
  });

  it('shows what was made to mislead by its letters: nothing turns the text around it', async () => {
    const reversed = 'shop\u202Egnp.exe\u2066</script><b>';
    const long = 'x'.repeat(10_000);
    const hostile = await startShopward({
      upstream: shop.url,
      rows: [
        { match: 'GET /orders', scopes: ['read'] },
        { match: 'GET /long', scopes: [`s${long}`] },
      ],
      config: {
        mode: 'observe',
        rollout: { clientId: 'azp' },
        admin: { edit: true },
        auth: { keys: { files: ['public.pem'] } },
      },
    });
    const token = hostile.issueToken({ azp: reversed });
    const fields = { 'User-Agent': '="=1+1",</script>', 'X-Request-Id': long.slice(0, 2_000) };
    await fetch(`${hostile.url}/orders`, { headers: { ...fields, Authorization: `Bearer ${token}` } });
    await fetch(`${hostile.url}/${'%E2%80%AE'.repeat(500)}`, { headers: fields });
    await page.setViewportSize({ width: 320, height: 800 });
    for (const view of ['roll-out', 'requests', 'list', 'now', 'system']) {
      await open(view, hostile.adminUrl);
      const { text, width } = await page.evaluate<{ text: string; width: number }>(
        '({ text: document.body.textContent, width: document.documentElement.scrollWidth })',
      );
      expect(text, view).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
      if (view === 'roll-out') expect(text).toContain('shop\\u{202e}gnp.exe\\u{2066}</script><b>');
      expect(width, view).toBe(320);
      expect(await page.locator('#main b:text-is("x"), #main script').count(), view).toBe(0);
    }
    await page.goto('about:blank');
    await hostile.stop();
  });

  describe('requests', () => {
    it('appear by themselves, and one click leads to why', async () => {
      await page.clock.install();
      await open('requests');
      await fetch(`${shopward.url}/orders/DE--1001`, { headers: { Authorization: 'Bearer abc' } });
      const item = decisions().filter({ hasText: 'GET /orders/DE--1001' }).first();
      await item.getByText('refused: access-token-invalid (malformed)').waitFor();
      await item.getByRole('button').click();
      await item.getByText('Why: ').waitFor();
      expect(await item.textContent()).toContain('What to do: ');
      await item.locator('.pill', { hasText: 'Protected' }).waitFor();
      expect(await item.locator('.detail').textContent()).toContain('GET /orders/{order_id}');
      expect(await item.getByRole('button').getAttribute('aria-expanded')).toBe('true');
      // Nothing moves under whoever reads it.
      await page.getByRole('button', { name: 'Follow again' }).waitFor();
      const before = await decisions().count();
      await fetch(`${shopward.url}/orders/DE--1002`);
      await nextRound();
      expect(await decisions().count()).toBe(before);
      await page.getByRole('button', { name: 'Follow again' }).click();
      await decisions().filter({ hasText: 'DE--1002' }).first().waitFor();
    });

    it.each([
      ['reason=access-token-invalid', 'search-token', '/wishlists'],
      ['path=search-token', 'search-token', '/wishlists'],
      ['row=%2Fcarts%2F%7Bcart_id%7D', '/carts/search-token', '/wishlists'],
      ['outcome=passed', 'abstract-products', '/wishlists'],
      ['q=search-token', 'search-token', 'abstract-products'],
    ])('are found by their address: %s', async (query, there, absent) => {
      await fetch(`${shopward.url}/carts/search-token`, { headers: { Authorization: 'Bearer abc' } });
      await fetch(`${shopward.url}/abstract-products/134`);
      await fetch(`${shopward.url}/wishlists`);
      await open(`requests?${query}`);
      await decisions().filter({ hasText: there }).first().waitFor();
      expect(await decisions().filter({ hasText: absent }).count()).toBe(0);
    });

    it('are searched by form, by id, and by what they have in common', async () => {
      const response = await fetch(`${shopward.url}/returns`);
      const id = response.headers.get('x-request-id') ?? 'none';
      await open('requests');
      await page.getByText('One field only').click();
      await page.getByLabel('Request id').fill(id);
      await page.getByLabel('Request id').press('Enter');
      await page.getByText('1 decision of the last').waitFor();
      expect(await decisions().count()).toBe(1);
      expect(page.url()).toContain(`id=${id}`);
      await page.getByLabel('Request id').fill('no such id');
      await page.getByRole('button', { name: 'Search' }).click();
      await page
        .getByText(/^No decision fits, of the last [\d,]+, kept since .*paste the line into/)
        .waitFor();
      // As it is copied from an answer or an address line.
      for (const pasted of [`X-Request-Id: ${id}`, `https://shop.example/returns?include=items`]) {
        await open('requests');
        await page.getByLabel('Search decisions').fill(pasted);
        await page.getByLabel('Search decisions').press('Enter');
        await decisions().filter({ hasText: 'GET /returns' }).first().waitFor();
        await expect.poll(() => decisions().filter({ hasText: 'abstract-products' }).count()).toBe(0);
      }

      await open('requests?q=returns');
      await fetch(`${shopward.url}/returns`);
      await page.locator('.chip', { hasText: 'access-token-missing' }).click();
      await page.waitForURL(/q=returns&reason=access-token-missing/);
      const reason = page.getByLabel('Reason', { exact: true });
      await expect.poll(() => reason.inputValue()).toBe('access-token-missing');
    });

    it('that were malformed are explained by what was said of them', async () => {
      const target = new URL(shopward.url);
      const socket = connect(Number(target.port), target.hostname);
      socket.end('GET /a/../malformed HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n');
      await once(socket.resume(), 'close');
      await open('requests?reason=bad-request-target');
      await decisions().first().getByRole('button').click();
      const detail = decisions().first().locator('.detail');
      await detail.getByText('What to do: ').waitFor();
      await detail.getByText('it was not understood', { exact: false }).first().waitFor();
    });

    it('are shown as text, whatever attackers send', async () => {
      const attack = '<img src=x onerror=alert(1)>';
      await fetch(`${shopward.url}/${encodeURIComponent(attack)}`);
      await fetch(`${shopward.url}/carts/${encodeURIComponent('"><script>alert(2)')}`);
      await open('requests');
      const item = decisions().filter({ hasText: 'script' }).first();
      await item.getByRole('button').click();
      await item.locator('.detail .pill').waitFor();
      await page.getByText('Explain a request').click();
      await page.locator('#explain-url').fill(`/carts/${attack}`);
      await page.getByRole('button', { name: 'Explain', exact: true }).click();
      await page.locator('#explain-result', { hasText: 'onerror' }).waitFor();
      await open(`requests?q=${encodeURIComponent(attack)}&outcome=%3Cb%3E`);
      await open(`requests?reason=${encodeURIComponent(attack)}`);
      expect(await page.locator('#main img, #main script, #main iframe').count()).toBe(0);
      complaints = complaints.filter((text) => !text.includes('400'));
    });
  });

  it('says wherever it is that no answer comes, and goes on with another process', async () => {
    // Ports that nobody takes while there is no process behind them.
    const ports = { admin: { port: await freePort() }, listen: { port: await freePort() } };
    const other = await start(ports);
    await fetch(`${other.url}/returns`);
    await open('requests', other.adminUrl);
    await decisions().filter({ hasText: '/returns' }).first().waitFor();
    await other.stop();
    const silence = page.getByRole('alert').filter({ hasText: 'shopward does not answer' });
    await silence.getByText(/What is shown is of \d+ \w+ \d{4}, [\d:]{8} \S+\. Look whether/).waitFor();
    expect(await page.locator('#health').textContent()).toBe('no answer');
    // What was well a moment ago is not said to be, whichever view is looked at next.
    const sentence = page.locator('#sentence[data-status="unknown"]', { hasText: 'does not answer' });
    await sentence.waitFor({ state: 'attached' });
    expect(await page.locator('#announcement').textContent()).toBe('shopward does not answer');
    // What the browser says of connections that were refused is no fault of the page.
    complaints = complaints.filter((text) => !text.includes('net::ERR'));
    // It counts from 1 again, as the one before it did, and the page hears of it when it has counted.
    await page.context().setOffline(true);
    const again = await start({ ...ports, mode: 'observe' });
    await fetch(`${again.url}/orders`);
    await page.context().setOffline(false);
    await page.locator('#health', { hasText: 'ready' }).waitFor();
    await silence.waitFor({ state: 'hidden' });
    await decisions().filter({ hasText: '/orders' }).first().waitFor();
    expect(await decisions().filter({ hasText: '/returns' }).count()).toBe(0);
    await page.getByRole('link', { name: 'System' }).click();
    await page.locator('#config-list > div', { hasText: 'mode' }).getByText('observe').first().waitFor();
    await page.goto('about:blank');
    await again.stop();
    complaints = complaints.filter((text) => !text.includes('net::ERR'));
  });

  describe('charts', () => {
    const chart = (name: string) => page.getByRole('slider', { name: `${name}: values over time` });

    it('tell the values of a moment, under the pointer and by keyboard', async () => {
      await fetch(`${shopward.url}/abstract-products/134`);
      await open();
      const requests = page.locator('#chart-outcomes');
      await requests.locator('canvas').waitFor();
      await requests.locator('.moment', { hasText: 'Newest: ' }).waitFor();
      // Nine seconds ago: further left nothing is told of what was before the start.
      const box = await requests.locator('.u-over').boundingBox();
      if (box === null) throw new Error('the chart has no place');
      await page.mouse.move(box.x + box.width * 0.97, box.y + box.height / 2);
      await requests.locator('.moment', { hasText: /^\d\d:\d\d:\d\d to \d\d:\d\d:\d\d$/ }).waitFor();
      await page.mouse.move(0, 0);
      await requests.locator('.moment', { hasText: 'Newest: ' }).waitFor();

      await chart('Requests').focus();
      await page.keyboard.press('End');
      const last = await chart('Requests').getAttribute('aria-valuetext');
      expect(last).toMatch(
        /^[\d:]{8} to [\d:]{8}, not over yet: passed [\d,]+, refused [\d,]+, would be refused 0, failed [\d,]+$/,
      );
      await page.keyboard.press('Home');
      expect(await chart('Requests').getAttribute('aria-valuenow')).toBe('0');
      // Nobody counted then: it is a gap, and no zero.
      await page.getByLabel('24 h', { exact: true }).check();
      await page.keyboard.press('Tab');
      await chart('Requests').focus();
      await page.keyboard.press('Home');
      await expect
        .poll(() => chart('Requests').getAttribute('aria-valuetext'))
        .toMatch(/, before the start: passed none, refused none, would be refused none, failed none$/);
      await page.getByLabel('5 min', { exact: true }).check();
      await chart('Requests').focus();
      await page.keyboard.press('Home');
      await page.keyboard.press('ArrowRight');
      expect(await chart('Requests').getAttribute('aria-valuenow')).toBe('1');
      await page.keyboard.press('Escape');
      await requests.locator('.moment', { hasText: 'Newest: ' }).waitFor();
    });

    it('tell latencies for the whole, the shop and shopward, and look further back', async () => {
      await fetch(`${shopward.url}/abstract-products/134`);
      await open();
      const latency = page.locator('#chart-latency');
      await chart('Latency').focus();
      await page.keyboard.press('End');
      await expect
        .poll(() => chart('Latency').getAttribute('aria-valuetext'))
        .toMatch(/whole request .*, the shop's share, where it was asked .*, shopward's own share /);
      await latency.getByLabel('Percentile').selectOption('p99');
      await page.getByLabel('1 h', { exact: true }).check();
      await page.locator('#chart-outcomes figcaption', { hasText: 'in steps of 30 s' }).waitFor();
      await page.getByLabel('24 h', { exact: true }).check();
      await page.locator('#chart-outcomes figcaption', { hasText: 'in steps of 10 min' }).waitFor();
    });
  });

  it('moves nothing while it is refreshed', async () => {
    await page.clock.install();
    await open();
    await page.waitForTimeout(1_000);
    await page.evaluate(`globalThis.shifts = 0; new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) globalThis.shifts += entry.value;
    }).observe({ type: 'layout-shift' })`);
    for (let i = 0; i < 3; i++) {
      await fetch(`${shopward.url}/abstract-products/${i}`);
      await nextRound();
    }
    expect(await page.evaluate('globalThis.shifts')).toBe(0);
  });

  it('searches the list', async () => {
    await open('list');
    const rows = page.locator('#row-body tr');
    await page.getByText('56 rows of 56, the first 20 are shown').waitFor();
    await page.getByRole('button', { name: 'Show all 56' }).click();
    await expect.poll(() => rows.count()).toBe(56);
    await page.getByLabel('Search rows').fill('delete wishlist-items');
    await page.getByText('1 row of 56').waitFor();
    expect(await rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain('/wishlists/{wishlist_id}/wishlist-items/');
    await page.getByLabel('Search rows').fill('no such row');
    await page.getByText('0 rows of 56').waitFor();
    await page.getByLabel('Search rows').fill('');
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
    await open('requests');
    await page.getByText('Explain a request').click();
    await page.getByLabel('Method').selectOption(method);
    await page.locator('#explain-url').fill(url);
    await page.locator('#explain-url').press('Enter');
    await page.locator('#explain-result .pill', { hasText: verdict }).waitFor();
    expect(await page.locator('#explain-result').textContent()).toContain(text);
  });

  it('shows what is wrong with an edit, with its place, until it is mended', async () => {
    await open('list');
    const good = await readFile(shopward.listFile, 'utf8');
    await writeFile(shopward.listFile, good.replace('    - GET /orders\n', '    - FETCH /orders\n'));
    const line = good.split('\n').indexOf('    - GET /orders') + 1;
    const banner = page.locator('#list-problems .banner');
    await banner.getByText(`${shopward.listFile}:${line}:7`).waitFor();
    await banner.getByText('error: an unknown method').waitFor();
    await page.locator('#health', { hasText: 'ready, not all well' }).waitFor();
    await page.getByRole('link', { name: 'Now' }).click();
    await page.locator('#sentence', { hasText: `${shopward.listFile}:${line}:7` }).waitFor();
    await writeFile(shopward.listFile, good);
    await page
      .locator('#sentence[data-status="ok"]', { hasText: /Over since .* \(.*\): The last edit of a file/ })
      .waitFor();
    await page.locator('#past summary').click();
    await page.locator('#past-list', { hasText: 'The last edit is not in force' }).waitFor();
  });

  describe('the editor', () => {
    const textarea = () => page.getByLabel('Text of the list');
    const save = () => page.getByRole('button', { name: 'Save', exact: true });
    const check = () => page.getByRole('button', { name: 'Check and show' }).click();

    it('checks, shows the difference, asks for consent where routes open, and saves', async () => {
      await open('list');
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
      await page.getByLabel('Search rows').fill('gift-cards');
      await page.getByText('1 row of 56').waitFor();
      expect((await fetch(`${shopward.url}/gift-cards/1`)).status).toBe(401);
      await page.locator('#history-list > li', { hasText: 'GET /returns' }).waitFor();
      const edit = page.locator('#history-list > li').first();
      expect(await edit.textContent()).toContain('1 route is protected less than before.');
      await writeFile(shopward.listFile, before);
      await page.getByText('0 rows of 56').waitFor();
      // Whoever writes the file: the history has it, and the log.
      await page.locator('#history-list > li', { hasText: 'GET /gift-cards/{id}' }).nth(1).waitFor();
      await shopward.waitForLog(
        ({ event, row, level }) => event === 'list-row' && row === 'GET /gift-cards/{id}' && level === 'warn',
      );
    });

    it('saves nothing with a mistake, and leads to it', async () => {
      await open('list');
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
      await open('list');
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
      await page.getByRole('alert').filter({ hasText: 'the file has changed since you read it' }).waitFor();
      expect(await readFile(shopward.listFile, 'utf8')).toBe(theirs);
      // What was typed stays, and shows what it would undo.
      await page.getByRole('button', { name: 'Keep my text, and compare it' }).click();
      await page.locator('#edit-result .diff.removed', { hasText: '# theirs' }).waitFor();
      expect(await textarea().inputValue()).toContain('# mine');
      await page.locator('#edit-save:enabled').waitFor();
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
      // No key closes it, and no text is taken that no field could carry.
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
      await fetch(`${guarded.url}/orders`);
      await page.locator('#sentence', { hasText: '1 request would have been refused' }).waitFor();
      // What is counted anew takes nobody's focus away.
      await page.getByRole('link', { name: 'Is it safe to enforce?' }).focus();
      await fetch(`${guarded.url}/orders`);
      await page.locator('#sentence', { hasText: '2 requests would have been refused' }).waitFor();
      expect(await page.evaluate('document.activeElement.textContent')).toBe('Is it safe to enforce?');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'GET /orders: access-token-missing' }).waitFor();
      await page.getByRole('link', { name: 'Look at these requests' }).click();
      await page.getByText('would be refused: access-token-missing').first().waitFor();
      await page.getByRole('link', { name: 'List' }).click();
      await page.locator('#row-body tr').first().waitFor();
      expect(await page.locator('#edit').isVisible()).toBe(false);
      await page.getByRole('link', { name: 'System' }).click();
      await page.locator('#config-list dt').first().waitFor();
      const main = (await page.locator('#main').textContent()) ?? '';
      expect(main).not.toMatch(/life cycle is enforced/);
      await page.getByRole('link', { name: 'Now' }).click();

      await page.reload();
      await page.locator('#totals dd').first().waitFor();
      expect(await dialog.isVisible()).toBe(false);
      expect(await page.evaluate('localStorage.length')).toBe(0);
      // The browser names every 401 in its log.
      complaints = complaints.filter((text) => !text.includes('401'));
    });
  });

  describe('the system', () => {
    it('shows parts, processes, keys and settings, and counts refresh tokens', async () => {
      await open('system');
      await page.locator('#keys-body tr', { hasText: 'RS256' }).waitFor();
      await page.locator('#keys-about', { hasText: shop.jwksUrl }).waitFor();
      await page.getByText('1 of 1 process serves here').waitFor();
      await page.getByRole('button', { name: 'Count them' }).click();
      await page.locator('#tokens-result', { hasText: '0 logins' }).waitFor();
      await page.getByLabel('Search settings').fill('upstream.url');
      await page.getByText(/^1 setting of \d+$/).waitFor();
      expect(await page.locator('#config-list').textContent()).toContain(shop.url);
    });

    it('names the issuer of each key, and of each source, where there are several', async () => {
      const away = `http://127.0.0.1:${await freePort()}/keys`;
      const issuers = [
        { name: 'customers', issuer: 'https://customers.example', keys: { jwks: shop.jwksUrl } },
        { name: 'partners', issuer: 'https://partners.example', keys: { files: ['public.pem'] } },
        { name: 'staff', issuer: 'https://staff.example', keys: { jwks: away } },
      ];
      const several = await start({ auth: { keys: undefined, issuers } });
      try {
        await open('system', several.adminUrl);
        await page.locator('#keys-body tr', { hasText: 'customers: ' }).waitFor();
        const rows = await page.locator('#keys-body tr').allInnerTexts();
        expect(rows.map((row) => row.split(':')[0])).toEqual(['customers', 'partners']);
        const about = page.locator('#keys-about');
        await about.getByText('unreachable').waitFor();
        expect(await about.innerText()).toMatch(/customers.*partners.*staff/s);
        await page.getByLabel('Search settings').fill('auth.issuers');
        expect(await page.locator('#config-list').textContent()).toContain(away);
        expect(await findAccessibilityFaults(page)).toEqual([]);
      } finally {
        await several.kill();
      }
    });

    it('purges only what was confirmed', async () => {
      await open('system');
      await page.getByLabel('URL', { exact: true }).fill('/en/x');
      await page.getByRole('button', { name: 'Drop…' }).click();
      const dialog = page.getByRole('dialog', { name: 'Are you sure?' });
      await dialog.getByText('what is cached of /en/x').waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'hidden' });
      expect(await page.locator('#purge-notice').textContent()).toBe('');
      await page.getByRole('button', { name: 'Drop…' }).click();
      await dialog.getByRole('button', { name: 'No' }).click();
      expect(await page.locator('#purge-notice').textContent()).toBe('');
      await page.getByRole('button', { name: 'Drop…' }).click();
      await dialog.getByRole('button', { name: 'Drop it' }).click();
      await page.locator('#purge-notice', { hasText: 'Dropped what is cached of /en/x.' }).waitFor();
    });
  });

  it('shows no secret, on the page or in any answer', async () => {
    const secrets = {
      auth: {
        keys: { jwks: undefined, secret: 'planted-hmac-secret-of-32-octets-and-more' },
        algorithms: ['HS256'],
      },
      admin: { token: 'planted-admin-token' },
      refreshTokens: { digestKey: 'planted-digest-key' },
      // Nobody answers there: its password is used, and shown to nobody, all the same.
      store: { url: `redis://planted-user:planted-password@127.0.0.1:${await freePort()}` },
    };
    const guarded = await start(secrets);
    try {
      const headers = { Authorization: 'Bearer planted-admin-token' };
      const places = [
        'state',
        'rows',
        'config',
        'system',
        'reasons',
        'decisions/search',
        'series',
        'list',
        'list/history',
      ];
      for (const place of [...places, 'refresh-tokens']) {
        const response = await fetch(`${guarded.adminUrl}/api/${place}`, { headers });
        expect(await response.text(), place).not.toContain('planted');
      }
      await page.goto(`${guarded.adminUrl}/#/system`);
      await page.locator('#token-input').fill('planted-admin-token');
      await page.locator('#token-input').press('Enter');
      await page.locator('#config-list dt').first().waitFor();
      await page.locator('#config-kind').selectOption('all');
      const settings = (await page.locator('#config-list').textContent()) ?? '';
      for (const name of ['auth.keys.secret', 'admin.token', 'refreshTokens.digestKey', 'store.url']) {
        expect(settings).toContain(name);
      }
      expect(await page.locator('#config-list [data-secret=true]').count()).toBe(4);
      for (const view of ['system', 'now', 'requests', 'list', 'roll-out']) {
        await page.locator(`nav [data-view="${view}"]`).click();
        await page
          .locator(filled[view] ?? 'main')
          .first()
          .waitFor();
        expect(await page.content(), view).not.toContain('planted');
      }
      complaints = complaints.filter((text) => !text.includes('401'));
    } finally {
      await page.goto('about:blank');
      await guarded.stop();
    }
  });

  it('is of use without a mouse', async () => {
    await open();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the content');
    await page.keyboard.press('Enter');
    const walk = async (steps: number) => {
      const visited: string[] = [];
      for (let i = 0; i < steps; i++) {
        await page.keyboard.press('Tab');
        const name: string = await page.evaluate(
          'document.activeElement.id || document.activeElement.ariaLabel || document.activeElement.textContent',
        );
        visited.push(name);
        const ring = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
        expect(ring, name).not.toBe('none');
      }
      return visited;
    };
    // What the first screen says comes before the charts, whatever it is at the moment.
    const links = await page.locator('#sentence a, #concerns a').count();
    expect((await walk(links + 5)).slice(links)).toEqual([
      '',
      'Requests: values over time',
      'latency-percentile',
      'Latency: values over time',
      'Refusals and outages: values over time',
    ]);
    await page.getByRole('link', { name: 'Requests' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.activeElement.id')).toBe('requests-title');
    await fetch(`${shopward.url}/orders`);
    await decisions().first().waitFor();
    const places = await walk(6);
    expect(places.slice(1, 4)).toEqual(['search-q', 'search-outcome', 'follow']);
    await decisions().first().getByRole('button').focus();
    await page.keyboard.press('Enter');
    await decisions().first().locator('.detail .pill').waitFor();
  });

  it('announces a change of state once, and nothing else', async () => {
    await page.clock.install();
    await open();
    await page.evaluate(`globalThis.said = []; new MutationObserver(() => {
      globalThis.said.push(document.getElementById('announcement').textContent);
    }).observe(document.getElementById('announcement'), { childList: true, characterData: true, subtree: true })`);
    for (let round = 0; round < 3; round++) await nextRound();
    expect(await page.evaluate('globalThis.said')).toEqual([]);
    const live = await page.locator('#view-now [aria-live], #view-now [role=status]').count();
    expect(live).toBe(0);
  });

  it.each(['light', 'dark'] as const)(
    'fits a small phone in %s, with the editor open',
    async (colorScheme) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: 320, height: 800 });
      await fetch(`${shopward.url}/${'long-'.repeat(15)}/${'x'.repeat(79)}`);
      await open('requests');
      const item = decisions().filter({ hasText: 'long-' }).first();
      await item.getByRole('button').click();
      await item.locator('.detail .pill').waitFor();
      const fits = async () => {
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(320);
        expect(await findAccessibilityFaults(page)).toEqual([]);
        expect(await findAxeFaults(page)).toEqual([]);
      };
      await fits();
      await open('list');
      await openEditor();
      await page.getByLabel('Text of the list').fill('groups:\n  A:\n    - GET /a\ncomplete: true\n');
      await page.getByRole('button', { name: 'Check and show' }).click();
      await page.locator('#edit-consent').waitFor();
      await fits();
      const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
      expect(background).toBe(colorScheme === 'dark' ? 'rgb(15, 19, 24)' : 'rgb(244, 245, 247)');
    },
  );
});

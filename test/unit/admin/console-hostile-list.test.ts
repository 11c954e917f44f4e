import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Page, Response } from 'playwright-core';
import { describe, expect, it, type TestContext } from 'vitest';
import { startShopward } from '../../harness/shopward.ts';
import { openPage, useBrowser } from './console-page.ts';
import { filled } from './console-states.ts';

const stage = useBrowser();

/** A proxy and a page for one test. */
async function staged(context: TestContext) {
  const shopward = await startShopward({
    upstream: `http://127.0.0.1:${stage.upstream.port}`,
    rows: ['GET /carts'],
    config: { mode: 'observe' },
  });
  context.onTestFinished(() => shopward.stop());
  const { page } = await openPage(context, stage.browser);

  /**
   * Writes the list and waits until it has been compared. The log then has a line for its last row or, for a long list,
   * the number of rows that were not logged.
   */
  async function edit(groups: Readonly<Record<string, readonly unknown[]>>, isLong = false): Promise<void> {
    const before = shopward.log().length;
    await writeFile(shopward.listFile, JSON.stringify({ groups, complete: true }));
    const last = Object.values(groups).at(-1)?.at(-1);
    await shopward.waitForLog(
      ({ event, row }) => (isLong ? event === 'list-rows-not-logged' : event === 'list-row' && row === last),
      before,
    );
  }
  return { shopward, page, edit };
}

/** Expects no character that changes the direction of text, no markup, and a page no wider than its window. */
async function looksRight(page: Page): Promise<{ readonly text: string; readonly height: number }> {
  const seen = await page.evaluate<{ text: string; height: number; width: number; window: number }>(
    '({ text: document.body.textContent, height: document.documentElement.scrollHeight, width: document.documentElement.scrollWidth, window: innerWidth })',
  );
  expect(seen.width).toBe(seen.window);
  expect(seen.text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u{e0000}-\u{e007f}]/u);
  expect(await page.locator('#main script, #main img, #main b:text-is("x")').count()).toBe(0);
  return seen;
}

const planes = ['a', '\u05d0', '\u{1f600}', '\u{20000}', '\u{30000}', '\u{e0041}', '\u{f0000}', '\u{10fffd}'];
const hostile = {
  '<script>alert(1)</script>': ['GET /script'],
  '"><img src=x onerror=alert(2)>': ['GET /image'],
  'shop\u202egnp.exe\u2066\u200b': ['GET /turned'],
  [planes.join('')]: ['GET /planes'],
  [`\u0645\u0631\u062d\u0628\u0627 ${'x'.repeat(10_000)}`]: [
    { match: 'GET /long-group', scopes: ['s'.repeat(10_000)] },
  ],
  'half of a letter \ud800 and another \udc00': ['GET /lone'],
  rows: [`GET /${'x'.repeat(10_000)}`, `GET /${'y/'.repeat(50)}z`, "GET /''!--=&()"],
};

/** Limit of one response to the page. A list of 10,000 rows of some 180 bytes is longer. */
const mostBytes = 160 * 1024;
/** Limit of all responses together; each address counts once. A list that is fetched page by page is longer. */
const mostInAll = 4 * mostBytes;

/** Lists made to mislead or flood their reader, in a real browser. */
describe.concurrent('the console', () => {
  it('shows a list of 10,000 rows, which replaces another, in small responses', {
    timeout: 300_000,
  }, async (context) => {
    const { shopward, page, edit } = await staged(context);
    const many = (name: string) => ({ A: Array.from({ length: 10_000 }, (_, i) => `GET /${name}-${i}`) });
    await edit(many('old'), true);
    await edit(many('new'), true);
    const asked = new Map<string, number>();
    const read: Promise<void>[] = [];
    const measure = async (response: Response) => {
      const body = await response.body().catch(() => Buffer.alloc(0));
      asked.set(response.url(), Math.max(body.length, asked.get(response.url()) ?? 0));
    };
    page.on('response', (response) => read.push(measure(response)));
    await page.goto(`${shopward.adminUrl}/#/list`);
    await page.getByText('10,000 rows of 10,000, the first 20 are shown').waitFor();
    await page.getByLabel('Search rows').fill('new-9999');
    await page.getByText('1 row of 10,000').waitFor();
    await page.getByLabel('Search rows').fill('');
    await page.getByRole('button', { name: 'Show the first 500' }).click();
    await context.expect.poll(() => page.locator('#row-body tr').count()).toBe(500);
    await page.getByRole('link', { name: 'Roll-out' }).click();
    await page.locator('#roll-out-sentence .say').waitFor();
    await Promise.all(read);
    expect([...asked].filter(([, bytes]) => bytes > mostBytes)).toEqual([]);
    const inAll = asked.values().reduce((sum, bytes) => sum + bytes, 0);
    expect(inAll, [...asked].join('\n')).toBeLessThan(mostInAll);
    await page.getByRole('link', { name: 'List' }).click();
    await page.getByText('10,000 rows of 10,000').waitFor();
    await looksRight(page);
  });

  it('shows misleading rows as plain text', { timeout: 180_000 }, async (context) => {
    const { shopward, page, edit } = await staged(context);
    await edit(hostile);
    await page.goto(`${shopward.adminUrl}/#/list`);
    await page.locator('#row-body tr', { hasText: '<script>alert(1)</script>' }).waitFor();
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 900 });
      const { text, height } = await looksRight(page);
      expect(text).toContain('shop\\u{202e}gnp.exe\\u{2066}\\u{200b}');
      expect(text).toContain('half of a letter \\u{d800} and another \\u{dc00}');
      for (const plane of planes.filter((one) => one !== '\u{e0041}')) expect(text).toContain(plane);
      expect(height).toBeLessThan(12_000);
    }
    // Problems of such rows are shown, too.
    const A = ['GET /<script>alert(3)</script>', 'GET /\u202eevil', `GET /${'\u{20000}'.repeat(5_000)}`];
    await writeFile(shopward.listFile, JSON.stringify({ groups: { A }, complete: true }));
    await page.locator('#list-problems', { hasText: 'alert(3)' }).waitFor();
    expect((await looksRight(page)).text).toContain('\\u{202e}evil');
    await page.getByRole('link', { name: 'Now' }).click();
    await page.locator('#sentence, #concerns').filter({ hasText: 'can never match' }).first().waitFor();
    await looksRight(page);
  });

  it('shows misleading requests as plain text', { timeout: 180_000 }, async (context) => {
    const { shopward, page, edit } = await staged(context);
    await edit({ Test: [{ match: 'GET /carts', scopes: ['read'] }, 'GET /carts/{cart_id}'] });
    // The token names its client.
    const token = shopward.issueToken({ azp: 'shop\u202Egnp.exe\u2066</script><b>' });
    await fetch(`${shopward.url}/carts`, { headers: { Authorization: `Bearer ${token}` } });
    const markup = '<img src=x onerror=alert(4)>';
    const requests = [
      ['%E2%80%AEtxt.exe', `</code>${markup}`],
      ['1', 'W'.repeat(7_000)],
      [encodeURIComponent(markup), '"; DROP TABLE clients; --'],
      ['y'.repeat(7_000), 'shop\u00ad\u009b'],
      // Refused before rows are looked up.
      ['%ED%A0%80', markup],
      ['z%00', markup],
      ['a/../b', markup],
    ];
    for (const [i, [segment, agent]] of requests.entries()) {
      const target = new URL(shopward.url);
      const fields = ['Host: shop', `User-Agent: ${agent}`, `X-Request-Id: ${markup}${i}`];
      const lines = [`GET /carts/${segment} HTTP/1.1`, ...fields];
      const socket = connect(Number(target.port), target.hostname);
      // The client does not close first: leaving before the answer is another case.
      socket.write(Buffer.from(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`, 'latin1'));
      await once(socket.resume(), 'close');
    }
    for (const width of [1280, 320]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(`${shopward.adminUrl}/#/requests`);
      await page.locator('#decisions > li').nth(requests.length).waitFor();
      // Uses the keyboard, because a line that opens moves the lines below it away from the pointer.
      for (const line of await page.locator('#decisions .line').all()) await line.press('Enter');
      await context.expect.poll(() => page.locator('.detail .pill').count()).toBe(requests.length + 1);
      expect((await looksRight(page)).height).toBeLessThan(30_000);
      await page.goto(`${shopward.adminUrl}/#/roll-out`);
      await page.locator('#roll-out-list', { hasText: '</code><img src=x' }).waitFor();
      const { text, height } = await looksRight(page);
      expect(text).toMatch(/W{100}…/);
      expect(text).toContain('shop\\u{202e}gnp.exe\\u{2066}</script><b>');
      expect(height).toBeLessThan(10_000);
      for (const view of ['now', 'list', 'system']) {
        await page.goto(`${shopward.adminUrl}/#/${view}`);
        await page
          .locator(filled[view] ?? 'main')
          .first()
          .waitFor();
        await looksRight(page);
      }
    }
  });
});

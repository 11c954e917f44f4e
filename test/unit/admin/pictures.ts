/** Takes the pictures of docs/pictures again, with a demo shop and a shopward on free ports. */
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { cartIds } from '../../../demo/data/ids.ts';
import { startDemoShop } from '../../../demo/shop.ts';
import { startChromium } from '../../harness/chromium.ts';
import { ConsoleStage, consoleStates, filled } from './console-states.ts';

/** A state, the view of it that is taken, and the name of the file. */
const shots = [
  { state: 'attack', view: 'now', width: 1440, colorScheme: 'light', file: 'console-attack.png' },
  { state: 'observe', view: 'roll-out', width: 390, colorScheme: 'dark', file: 'console-roll-out-phone.png' },
] as const;

const agents: Readonly<Record<string, string>> = {
  '198.51.100.7': 'ShopApp/3.1 (Android)',
  '198.51.100.8': 'price-watch/2.0',
  '198.51.100.9': 'stock-sync/1.4',
  '203.0.113.66': 'python-requests/2.32',
};

async function edit(list: string): Promise<void> {
  const row = '    - GET /orders\n';
  await writeFile(list, (await readFile(list, 'utf8')).replace(row, `${row}    - GET /gift-cards\n`));
}

/** Sends requests of many clients with every outcome for over a minute, with an edit of the list and, on request, an attack. */
async function fillCharts(stage: ConsoleStage, isAttacked: boolean): Promise<void> {
  const token = await stage.shop.issueToken();
  const expired = await stage.shop.issueToken({ exp: 1_700_000_000 });
  const cart = cartIds.everyday;
  const ask = (client: string, target: string, bearer?: string, method = 'GET', fields = {}) =>
    stage
      .ask(target, {
        ...{ method, body: method === 'PATCH' ? '{}' : null },
        headers: {
          'X-Forwarded-For': client,
          'User-Agent': agents[client] ?? 'Mozilla/5.0 Firefox/140.0',
          'Content-Type': 'application/json',
          ...(bearer !== undefined && { Authorization: `Bearer ${bearer}` }),
          ...fields,
        },
      })
      .catch(() => {});
  const others: readonly [every: number, ...Parameters<typeof ask>][] = [
    [4, '198.51.100.7', '/orders/DE--1001', expired],
    [5, '198.51.100.8', '/carts'],
    [6, '198.51.100.9', `/carts/${cart}`, token, 'PATCH'],
    [7, '198.51.100.9', `/carts/${cart}`, token, 'PATCH', { 'If-Match': '"old"' }],
    [9, '198.51.100.10', '/orders/%zz', token],
  ];
  for (let step = 0; step < 180; step++) {
    const client = `192.0.2.${step % 40}`;
    const waves = 4 + Math.round(3 * Math.sin(step / 9)) + (step % 3);
    const requests = Array.from({ length: waves }, (_, i) => ask(client, `/abstract-products/${100 + i}`));
    requests.push(ask(client, '/carts', token), ask(client, `/carts/${cart}`, token));
    requests.push(ask(client, '/orders', token), ask(client, '/customers/DE--21', token));
    if (step % 2 === 0) requests.push(ask(client, '/url-resolver?url=/en/page-3'), ask(client, '/stores'));
    for (const [every, ...request] of others) if (step % every === 0) requests.push(ask(...request));
    if (step > 110 && step < 160 && isAttacked)
      for (let i = 0; i < 25; i++) requests.push(ask('203.0.113.66', `/orders/DE--${i}`, 'abc'));
    if (step === 60) await edit(stage.shopward.listFile);
    if (step === 80) stage.shop.settings.failNext = 12;
    await Promise.all(requests);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

async function take(browser: Browser, stage: ConsoleStage, shot: (typeof shots)[number]): Promise<void> {
  const { state, view, width, colorScheme, file } = shot;
  await consoleStates.find(({ name }) => name === state)?.make(stage);
  await fillCharts(stage, state === 'attack');
  const page = await browser.newPage();
  await page.goto(`${stage.shopward.adminUrl}/`);
  await page.locator('#sentence:not([data-status="unknown"])').waitFor();
  await page.setViewportSize({ width, height: width < 500 ? 1080 : 900 });
  await page.emulateMedia({ colorScheme });
  await page.locator(`nav [data-view="${view}"]`).click();
  await page
    .locator(filled[view] ?? 'main')
    .first()
    .waitFor();
  // The canvas is drawn in the next frame.
  await page.waitForTimeout(200);
  await page.mouse.move(0, 0);
  await page.screenshot({ path: path.join(import.meta.dirname, '../../../docs/pictures', file) });
  console.log(file);
  await page.close();
  await stage.stop();
}

const [browser, shop] = await Promise.all([startChromium(), startDemoShop()]);
const stage = new ConsoleStage(shop);
try {
  for (const shot of shots) await take(browser, stage, shot);
} finally {
  await browser.close();
  await stage.stop();
  await shop.close();
}

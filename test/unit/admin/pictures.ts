/**
 * Takes the pictures of the console: those of docs/pictures, or of every view in every state into a folder, so that
 * somebody can look at what was changed. The demo shop and shopward are started for it, on free ports.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { readArguments } from '../../../scripts/arguments.ts';
import { stateNames } from './console-state-names.ts';
import type { ConsoleStage } from './console-states.ts';

interface Shot {
  readonly view: string;
  readonly width: number;
  readonly colorScheme: 'light' | 'dark';
  readonly file: string;
}

const { all, state: only } = readArguments<{ readonly all?: string; readonly state?: string }>({
  name: 'npm run pictures --',
  about: 'Takes the pictures of docs/pictures anew.',
  options: [
    ['--all <folder>', 'every view in every state instead, wide and narrow, light and dark'],
    ['--state <name>', 'that state alone', undefined, stateNames],
  ],
});

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

/** Requests of many clients with every outcome for a minute and a half, with an attack or an edit of the list in between. */
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
  for (let step = 0; step < 180; step++) {
    const client = `192.0.2.${step % 40}`;
    const waves = 4 + Math.round(3 * Math.sin(step / 9)) + (step % 3);
    const requests = Array.from({ length: waves }, (_, i) => ask(client, `/abstract-products/${100 + i}`));
    requests.push(ask(client, '/carts', token), ask(client, `/carts/${cart}`, token));
    requests.push(ask(client, '/orders', token), ask(client, '/customers/DE--21', token));
    if (step % 2 === 0) requests.push(ask(client, '/url-resolver?url=/en/page-3'), ask(client, '/stores'));
    if (step % 4 === 0) requests.push(ask('198.51.100.7', '/orders/DE--1001', expired));
    if (step % 5 === 0) requests.push(ask('198.51.100.8', '/carts'));
    if (step % 6 === 0) requests.push(ask('198.51.100.9', `/carts/${cart}`, token, 'PATCH'));
    if (step % 7 === 0)
      requests.push(ask('198.51.100.9', `/carts/${cart}`, token, 'PATCH', { 'If-Match': '"old"' }));
    if (step % 9 === 0) requests.push(ask('198.51.100.10', '/orders/%zz', token));
    if (step > 110 && step < 160 && isAttacked)
      for (let i = 0; i < 25; i++) requests.push(ask('203.0.113.66', `/orders/DE--${i}`, 'abc'));
    if (step === 60) await edit(stage.shopward.listFile);
    if (step === 80) stage.shop.settings.failNext = 12;
    await Promise.all(requests);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

const { cartIds } = await import('../../../demo/data/ids.ts');
const { startDemoShop } = await import('../../../demo/shop.ts');
const { startChromium } = await import('../../harness/chromium.ts');
const states = await import('./console-states.ts');
const { consoleStates, filled, views } = states;
const docs = path.join(import.meta.dirname, '../../../docs/pictures');
const documented: Readonly<Record<string, readonly Shot[]>> = {
  attack: [{ view: 'now', width: 1440, colorScheme: 'light', file: path.join(docs, 'console-attack.png') }],
  observe: [
    {
      view: 'roll-out',
      width: 390,
      colorScheme: 'dark',
      file: path.join(docs, 'console-roll-out-phone.png'),
    },
  ],
};

function everyShot(state: string, folder: string): Shot[] {
  const schemes = ['light', 'dark'] as const;
  return views.flatMap((view) =>
    [1440, 390, 2560].flatMap((width) =>
      schemes.map((colorScheme) => {
        const name = `${state} ${view} ${width} ${colorScheme}.png`.replaceAll(' ', '-');
        return { view, width, colorScheme, file: path.join(folder, name) };
      }),
    ),
  );
}

async function take(page: Page, { view, width, colorScheme, file }: Shot): Promise<void> {
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
  await page.screenshot({ path: file, fullPage: all !== undefined });
  console.log(file);
}

async function takeAll(browser: Browser, stage: ConsoleStage): Promise<void> {
  for (const state of consoleStates) {
    if (only !== undefined && state.name !== only) continue;
    const shots = all === undefined ? (documented[state.name] ?? []) : everyShot(state.name, all);
    if (shots.length === 0) continue;
    await state.make(stage);
    if (state.name !== 'new') await fillCharts(stage, state.name === 'attack');
    const page = await browser.newPage();
    await page.goto(`${stage.shopward.adminUrl}/`);
    await page.locator('#sentence:not([data-status="unknown"])').waitFor();
    for (const shot of shots) await take(page, shot);
    await page.close();
    await stage.stop();
  }
}

if (all !== undefined) await mkdir(all, { recursive: true });
const [browser, shop] = await Promise.all([startChromium(), startDemoShop()]);
const stage = new states.ConsoleStage(shop);
try {
  await takeAll(browser, stage);
} finally {
  await browser.close();
  await stage.stop();
  await shop.close();
}

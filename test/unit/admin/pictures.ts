/**
 * Takes the pictures of the console: those of docs/pictures, or of every view in every state into a folder, so that
 * somebody can look at what was changed. The demo shop and shopward are started for it, on free ports.
 */
import { mkdir } from 'node:fs/promises';
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

/** Two minutes of traffic, so that charts and tables have something to show. */
async function fillCharts(stage: ConsoleStage): Promise<void> {
  for (let second = 0; second < 120; second++) {
    const isAttack = second > 70 && second < 105;
    await stage.traffic(3 + (second % 4));
    await stage.attack(isAttack ? 25 : 1);
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

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
    if (all === undefined && state.name === 'attack') await fillCharts(stage);
    const page = await browser.newPage();
    await page.goto(`${stage.shopward.adminUrl}/`);
    await page.locator(`#sentence[data-status="${state.status}"]`).waitFor();
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

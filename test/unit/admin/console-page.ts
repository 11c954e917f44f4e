import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, expect, type TestContext } from 'vitest';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { complaintsOf, startChromium } from '../../harness/chromium.ts';
import {
  answer,
  type RecordingUpstream,
  type Script,
  startRecordingUpstream,
} from '../../harness/recording-upstream.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { type HereOptions, startShopwardHere } from '../../harness/shopward-here.ts';
import { filled } from './console-states.ts';

let browser: Browser;
/** Set by the hooks of `useConsole`. */
export let shop: DemoShop;
/** For tests that do not edit its list and tolerate the requests of other tests. */
let shared: RunningShopward;

/** Options of a shopward in front of the demo shop. */
export const settings = (config: object = {}) => ({
  upstream: shop.url,
  config: { auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' }, ...config },
});

/** One browser and one upstream for the tests of a file. The upstream answers `{}` unless a script is given. */
export function useBrowser(script: Script = () => answer('{}')) {
  const stage = {} as { browser: Browser; upstream: RecordingUpstream };
  beforeAll(async () => {
    [stage.browser, stage.upstream] = await Promise.all([startChromium(), startRecordingUpstream(script)]);
  });
  afterAll(async () => {
    await stage.browser?.close();
    await stage.upstream?.close();
  });
  return stage;
}

/** One browser, one demo shop and one shopward for the tests of a file, which may run concurrently. */
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

/** Records the API paths that a new page requests, in order. */
export function watchAsked(page: Page) {
  const asked: string[] = [];
  let ended = 0;
  const isOfApi = (request: Request) => request.url().includes('/api/');
  const end = (request: Request) => {
    if (isOfApi(request)) ended++;
  };
  page.on('request', (request) => {
    if (isOfApi(request)) asked.push(new URL(request.url()).pathname);
  });
  page.on('requestfinished', end);
  page.on('requestfailed', end);
  return {
    asked,
    /** Resolves when every API request has ended and the page has made no further one. */
    async idle(): Promise<void> {
      for (let isIdle = false; !isIdle; ) {
        const before = asked.length;
        const isAnswered = ended === before;
        await handled(page);
        isIdle = isAnswered && asked.length === before;
      }
    },
  };
}

/** Resolves when the page has processed the answers so far: the answer to one more request comes after them. */
async function handled(page: Page): Promise<void> {
  await page.evaluate('fetch("livez").then((reply) => reply.text())');
}

/** A page for one test. The test fails if the page had complaints that were not forgiven. */
export async function openPage(context: TestContext, browser: Browser) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(120_000);
  const complaints = complaintsOf(page);
  const { idle } = watchAsked(page);
  const forgiven: string[] = [];
  context.onTestFinished(async () => {
    await page.close();
    // The browser logs a violation of the Content-Security-Policy as an error.
    const others = complaints.filter((complaint) => !forgiven.some((text) => complaint.includes(text)));
    expect(others).toEqual([]);
  });
  return {
    page,
    idle,
    /** Ignores complaints that contain `text`, earlier ones too. */
    forgive(text: string): void {
      forgiven.push(text);
    },
  };
}

/** A page for one test; with options, also a shopward for this test alone. */
export async function openConsole(context: TestContext, own?: HereOptions) {
  const shopward = own === undefined ? shared : await startShopwardHere(own);
  if (own !== undefined) context.onTestFinished(() => shopward.stop());
  // Opened after shopward, so it is closed first.
  const { page, idle, forgive } = await openPage(context, browser);
  return {
    shopward,
    page,
    idle,
    forgive,
    async open(pattern = 'now', url = shopward.adminUrl): Promise<void> {
      await page.goto(`${url}/#/${pattern}`);
      await page
        .locator(filled[pattern.split('?')[0] ?? ''] ?? 'main')
        .first()
        .waitFor();
    },
    decisions: () => page.locator('#decisions > li'),
  };
}

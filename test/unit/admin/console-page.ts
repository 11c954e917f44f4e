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
/** For those that neither edit its list nor mind what others ask it. */
let shared: RunningShopward;

/** What the tests start in front of the demo shop. */
export const settings = (config: object = {}) => ({
  upstream: shop.url,
  config: {
    auth: { keys: { jwks: shop.jwksUrl }, subject: 'sub.customer_reference' },
    ...config,
  },
});

/** One browser, and a shop of empty answers unless they are given, for the tests of a file. */
export function useBrowser(script: Script = () => answer('{}')) {
  const stage = {} as { browser: Browser; upstream: RecordingUpstream };
  beforeAll(async () => {
    [stage.browser, stage.upstream] = await Promise.all([startChromium(), startRecordingUpstream(script)]);
  }, 90_000);
  afterAll(async () => {
    await stage.browser?.close();
    await stage.upstream?.close();
  });
  return stage;
}

/** One browser, one demo shop and one shopward for the tests of a file, which may run side by side. */
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

/** What a page that was just made asks of the admin port, place by place. */
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
    /** Until nothing is under way: a round of the page ends with the answer of its view. */
    async quiet(): Promise<void> {
      for (let isQuiet = false; !isQuiet; ) {
        const before = asked.length;
        const isAnswered = ended === before;
        await handled(page);
        isQuiet = isAnswered && asked.length === before;
      }
    },
  };
}

/** Until the page has looked at what was answered so far: it asks once more, and that answer comes after the others. */
async function handled(page: Page): Promise<void> {
  await page.evaluate('fetch("livez").then((reply) => reply.text())');
}

/** A page of one test, in which nothing went wrong by its end but what was forgiven. */
export async function openPage(context: TestContext, browser: Browser) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(120_000);
  const complaints = complaintsOf(page);
  const { quiet } = watchAsked(page);
  const forgiven: string[] = [];
  context.onTestFinished(async () => {
    await page.close();
    // A violation of the policy is an error in the log of the browser.
    const others = complaints.filter((complaint) => !forgiven.some((text) => complaint.includes(text)));
    expect(others).toEqual([]);
  });
  return {
    page,
    quiet,
    /** Complaints that contain `text` are no fault of the page, whenever they come. */
    forgive(text: string): void {
      forgiven.push(text);
    },
  };
}

/** What the page asks at this place from now on is held, or only the first `times`. */
export async function hold(page: Page, place: RegExp, options: { readonly times?: number } = {}) {
  const held = Promise.withResolvers<void>();
  await page.route(
    place,
    async (route) => {
      await held.promise;
      await route.continue();
    },
    options,
  );
  return {
    /** Something is held after this step, or by itself. */
    async by(step?: () => Promise<void>): Promise<void> {
      await Promise.all([page.waitForRequest(place), step?.()]);
    },
    /** Lets it go on, until the page has looked at the answer. */
    async letGo(): Promise<void> {
      const [response] = await Promise.all([page.waitForResponse(place), held.resolve()]);
      await response.finished();
      await handled(page);
    },
  };
}

/** A page of this test alone, and, where it is given options, a shopward that nobody else asks anything. */
export async function openConsole(context: TestContext, own?: HereOptions) {
  const shopward = own === undefined ? shared : await startShopwardHere(own);
  if (own !== undefined) context.onTestFinished(() => shopward.stop());
  // The page is closed before what it asks.
  const { page, quiet, forgive } = await openPage(context, browser);
  return {
    shopward,
    page,
    quiet,
    forgive,
    async open(place = 'now', url = shopward.adminUrl): Promise<void> {
      await page.goto(`${url}/#/${place}`);
      await page
        .locator(filled[place.split('?')[0] ?? ''] ?? 'main')
        .first()
        .waitFor();
    },
    decisions: () => page.locator('#decisions > li'),
  };
}

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { readPastedRequest } from '../../../src/cli/explain/pasted-request.ts';
import { answer } from '../../harness/recording-upstream.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';
import { openPage, useBrowser } from './console-page.ts';

interface Entry {
  readonly request: {
    readonly method: string;
    readonly url: string;
    readonly headers: readonly { readonly name: string; readonly value: string }[];
    readonly postData?: { readonly text: string };
  };
  readonly response: { readonly status: number; readonly content: { readonly text?: string } };
}

const stage = useBrowser(() => answer('x'.repeat(60_000), 'Content-Type: text/html\r\n'));
let shopward: RunningShopward;
let folder: string;
let har: { readonly log: { readonly entries: readonly Entry[] } };
let entry: Entry;

/** Contains each character that some form has to escape. */
const body = `{"data":{"type":"carts","attributes":{"name":"it's 50% & \\"half\\" ^ <b> \\u00e9é!\\n"}}}`;
const token = 'not-a-token';

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'console-pasted-'));
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${stage.upstream.port}`,
    rows: ['PATCH /carts/{cart_id}'],
  });
  await recordRequests();
}, 90_000);
afterAll(async () => {
  await shopward?.stop();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Records a page of the shop that loads, and a change that is refused. */
async function recordRequests(): Promise<void> {
  const file = path.join(folder, 'shop.har');
  const context = await stage.browser.newContext({ recordHar: { path: file, content: 'embed' } });
  const shop = await context.newPage();
  await shop.goto(`${shopward.url}/a-page`);
  const fields = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/vnd.api+json',
    'If-Match': '"5-1"',
  };
  const options = JSON.stringify({ method: 'PATCH', headers: fields, body });
  expect(
    await shop.evaluate(`fetch('/carts/1?include=items', ${options}).then(({ status }) => status)`),
  ).toBe(401);
  await context.close();
  har = JSON.parse(await readFile(file, 'utf8'));
  const found = har.log.entries.find(({ request }) => request.method === 'PATCH');
  if (found === undefined) throw new Error('the request is not in the HAR file');
  entry = found;
}

async function openExplain(context: TestContext) {
  const { page, forgive } = await openPage(context, stage.browser);
  await page.goto(`${shopward.adminUrl}/#/requests`);
  await page.getByText('Explain a request').click();
  return { page, forgive };
}

/** Like "Copy as cURL (bash)": `$'...'` if a character needs an escape. */
function asCurl({ request }: Entry): string {
  const quote = (text: string) => {
    if (!/[\p{Cc}!']/u.test(text)) return `'${text}'`;
    const escaped = (one: string) =>
      ({ '\\': '\\\\', "'": "\\'", '\n': '\\n', '\r': '\\r' })[one] ??
      `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
    return `$'${text.replace(/[\\\p{Cc}!']/gu, escaped)}'`;
  };
  const { method, url, headers, postData } = request;
  const fields = headers.filter(({ name }) => !name.startsWith(':'));
  return [
    `curl ${quote(url)}`,
    `-X ${quote(method)}`,
    ...fields.map(({ name, value }) => `-H ${quote(`${name}: ${value}`)}`),
    `--data-raw ${quote(postData?.text ?? '')}`,
  ].join(' \\\n  ');
}

/** Requests of a real Chromium, copied with its developer tools and pasted into the console. */
describe.concurrent('a request that is pasted', () => {
  it.for<[string, () => string]>([
    ['an entry of a HAR file', () => JSON.stringify(entry)],
    ['an entry with line breaks', () => JSON.stringify(entry, null, 2)],
    ['a HAR file with answers of 60 KB', () => JSON.stringify(har, null, 2)],
    ['curl for a shell', () => asCurl(entry)],
  ])('is explained with its method, its fields and its body: %s', async ([_what, textOf], context) => {
    const { page } = await openExplain(context);
    expect(entry.request.postData?.text).toBe(body);
    expect(readPastedRequest(textOf()).body).toBe(body);
    const before = stage.upstream.requestLines.length;
    await page.locator('#explain-url').fill(textOf());
    const [sent] = await Promise.all([
      page.waitForRequest('**/api/explain'),
      page.getByRole('button', { name: 'Explain', exact: true }).click(),
    ]);
    await page.locator('#explain-result .pill', { hasText: 'Protected' }).waitFor();
    const result = (await page.locator('#explain-result').textContent()) ?? '';
    expect(result).toContain('PATCH /carts/1?include=items');
    expect(result).toContain('PATCH /carts/{cart_id}');
    expect(result).toContain('401 code 001: Invalid access token. (malformed)');
    expect(result).not.toContain(token);
    // No method was chosen, so no text objects to one.
    expect(result).not.toContain('that is explained');
    // Response bodies stay in the tab, and no request goes to the shop.
    expect(sent.postData()).not.toContain('xxxxxxxxxx');
    expect(stage.upstream.requestLines.length).toBe(before);
  });

  it('rejects a text that is too long, and says how much may be pasted', async (context) => {
    const { page, forgive } = await openExplain(context);
    await page.locator('#explain-url').fill(`/${'x'.repeat(40_000)}`);
    await page.getByRole('button', { name: 'Explain', exact: true }).click();
    await page.locator('#explain-result', { hasText: 'too long: 32,768 characters at most' }).waitFor();
    forgive('400');
  });
});

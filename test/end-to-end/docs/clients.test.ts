import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { cartIds, seedPassword } from '../../../demo/data/ids.ts';
import { type DemoShop, startDemoShop } from '../../../demo/shop.ts';
import { rejectionTable } from '../../../src/http/rejection.ts';
import { startChromium } from '../../harness/chromium.ts';
import { eventually } from '../../harness/eventually.ts';
import { listen } from '../../harness/listen.ts';
import { startShopward } from '../../harness/shopward.ts';
import { type ShopwardHere, startShopwardHere } from '../../harness/shopward-here.ts';

/** Runs the snippets of docs/clients.md unchanged, in Node and in a browser page of another origin. */

const root = path.join(import.meta.dirname, '../../..');
let files: ReadonlyMap<string, string>;
let shop: DemoShop;
let shopward: ShopwardHere;
let page: http.Server;
let origin: string;
/** Each page has its own cookies, storage and cache. */
let browser: Browser;

beforeAll(async () => {
  const text = await readFile(path.join(root, 'docs/clients.md'), 'utf8');
  const snippets = [...text.matchAll(/^```js\n\/\/ (\S+)\n([\s\S]*?)^```$/gm)];
  files = new Map([
    ...snippets.map(([, name = '', code = '']): [string, string] => [name, code]),
    ['scenario.js', await readFile(path.join(import.meta.dirname, 'clients-scenario.js'), 'utf8')],
    ['axios.js', await readFile(path.join(root, 'node_modules/axios/dist/esm/axios.js'), 'utf8')],
    ['', '<script type="importmap">{"imports":{"axios":"./axios.js"}}</script>'],
  ]);
  page = http.createServer((incoming, response) => {
    const name = (incoming.url ?? '/').slice(1);
    response.setHeader('Content-Type', name.endsWith('.js') ? 'text/javascript' : 'text/html');
    response.end(files.get(name));
  });
  origin = (await listen(page)).url;
  [shop, browser] = await Promise.all([startDemoShop(), startChromium()]);
});
afterAll(async () => {
  await browser?.close();
  await shop?.close();
  page?.close();
});

const account = () => ({
  api: shopward.url,
  username: 'sonia@shop.example',
  password: seedPassword,
  cart: cartIds.everyday,
});

const forms = ['jsonapi', 'problem', 'json'] as const;

const expectedOf = (form: (typeof forms)[number]) => {
  const refusal = (status: number, code: string, reason: string) => ({
    ...{ status, code, hasRequestId: true },
    // The default form has no `type` member.
    reason: form === 'jsonapi' ? null : reason,
  });
  return {
    refused: refusal(401, '002', 'access-token-missing'),
    refusedByAxios: refusal(401, '002', 'access-token-missing'),
    untagged: refusal(428, '005', 'if-match-missing'),
    untaggedByAxios: refusal(428, '005', 'if-match-missing'),
    edits: [2, 2],
    names: ['By axios, edited', 'By fetch, edited'],
    areTags: true,
    readings: [200, 304],
    isSameCopy: true,
    isOnePair: true,
    usedAgain: refusal(401, '004', 'refresh-token-invalid'),
    refreshedByAxios: [200, 200, true],
    spentByAxios: refusal(401, '004', 'refresh-token-invalid'),
  };
};

describe.each(forms)('errors as %s', (form) => {
  beforeAll(async () => {
    shopward = await startShopwardHere({
      upstream: shop.url,
      config: {
        cors: { origins: [origin] },
        errors: { format: form },
        auth: { keys: { jwks: `${shop.url}/.well-known/jwks.json` }, subject: 'sub.customer_reference' },
      },
    });
  });
  afterAll(() => shopward.stop());

  test('in Node', async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'shopward-clients-'));
    try {
      await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
      await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
      for (const [name, code] of files) {
        if (name !== '' && name !== 'axios.js') await writeFile(path.join(folder, name), code);
      }
      const { run } = await import(pathToFileURL(path.join(folder, 'scenario.js')).href);
      expect(await run(account())).toEqual(expectedOf(form));
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test('in a page of another origin', async () => {
    const tab = await browser.newPage();
    await tab.goto(`${origin}/`);
    const play = `import('./scenario.js').then(({ run }) => run(${JSON.stringify(account())}))`;
    expect(await tab.evaluate(play)).toEqual(expectedOf(form));
    await tab.close();
  });
});

test('a shop of plain JSON: a refresh returns a pair, and a used token is refused as in RFC 6749', async () => {
  const plain = http.createServer(async (incoming, response) => {
    const { refresh_token } = JSON.parse(String(Buffer.concat(await incoming.toArray())));
    const pair = { access_token: 'a.b.c', refresh_token: `${refresh_token}-next`, expires_in: 600 };
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(pair));
  });
  const { url, close } = await listen(plain);
  const endpoint = { kind: 'exchange', method: 'POST', path: '/auth/refresh', format: 'json' };
  const one = await startShopwardHere({
    upstream: url,
    config: { refreshTokens: { endpoints: [endpoint] }, errors: { format: 'json' } },
  });
  const folder = await mkdtemp(path.join(tmpdir(), 'shopward-clients-'));
  try {
    await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
    for (const [name, code] of files)
      if (/^(api-error|request|refresh-json)/.test(name)) await writeFile(path.join(folder, name), code);
    const { refreshJson } = await import(pathToFileURL(path.join(folder, 'refresh-json.js')).href);
    const url = `${one.url}/auth/refresh`;
    const { access_token, refresh_token, expires_in } = await refreshJson(url, 'first-token');
    expect([access_token, refresh_token, expires_in]).toEqual(['a.b.c', 'first-token-next', 600]);
    const again = await refreshJson(url, 'first-token').catch((error: object) => error);
    expect(again).toMatchObject({ status: 400, code: 'invalid_grant' });
  } finally {
    await rm(folder, { recursive: true });
    await one.stop();
    await close();
  }
});

/** The shop answers the first refresh when the client waits. Until then a second one with the same token gets 503. */
test.each(['fetch', 'axios'])(
  'repeatWhileBusy waits for Retry-After of a real 503, by %s',
  async (library) => {
    const pair = { accessToken: 'a.b.c', refreshToken: `next-${library}`, expiresIn: 600 };
    const refreshes: http.ServerResponse[] = [];
    const slow = http.createServer((incoming, response) => {
      incoming.resume();
      response.setHeader('Content-Type', 'application/vnd.api+json');
      refreshes.push(response);
    });
    const { url, close } = await listen(slow);
    // Shopward runs in a process, because the test replaces the timers of this one.
    const one = await startShopward({ upstream: url });
    const folder = await mkdtemp(path.join(tmpdir(), 'shopward-busy-'));
    const delays: number[] = [];
    const realTimeout = globalThis.setTimeout;
    const timer = vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms: number) => {
      if (ms >= 1000 && ms < 1250) {
        delays.push(ms);
        // The wait ends once the other request has its answer.
        refreshes[0]?.end(JSON.stringify({ data: { type: 'refresh-tokens', attributes: pair } }));
      }
      return realTimeout(run, ms);
    }) as typeof setTimeout);
    try {
      await writeFile(path.join(folder, 'package.json'), '{"type":"module"}');
      await symlink(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
      for (const name of ['api-error.js', 'request.js', 'client-axios.js'])
        await writeFile(path.join(folder, name), files.get(name) ?? '');
      const load = (name: string) => import(pathToFileURL(path.join(folder, name)).href);
      const { repeatWhileBusy } = await load('api-error.js');
      const { request } = await load('request.js');
      const { createClient } = await load('client-axios.js');
      const document = { data: { type: 'refresh-tokens', attributes: { refreshToken: `spent-${library}` } } };
      const headers = { 'Content-Type': 'application/vnd.api+json' };
      const send = () =>
        library === 'fetch'
          ? request(`${one.url}/refresh-tokens`, { method: 'POST', headers, body: JSON.stringify(document) })
          : createClient(one.url).post('/refresh-tokens', document, { headers });
      const statuses: number[] = [];
      const noted = () =>
        send().catch((error: { status: number }) => {
          statuses.push(error.status);
          throw error;
        });
      const first = send();
      await eventually('the first refresh at the shop', () => refreshes.length > 0 || undefined);
      const second = await repeatWhileBusy(noted).catch(
        ({ status, code }: { status: number; code: string }) => ({ status, code }),
      );
      await first;
      expect(second).toEqual({ status: 401, code: '004' });
      expect(statuses).toEqual([503, 401]);
      expect(delays).toHaveLength(1);
    } finally {
      timer.mockRestore();
      await one.stop();
      await close();
      await rm(folder, { recursive: true });
    }
  },
);

test('ApiError reads each reason, and docs/reasons.md has its paragraph', async () => {
  const reasons = await readFile(path.join(root, 'docs/reasons.md'), 'utf8');
  const { ApiError } = await import(
    `data:text/javascript,${encodeURIComponent(files.get('api-error.js') ?? '')}`
  );
  for (const name of Object.keys(rejectionTable)) {
    for (const type of [`urn:shopward:reason:${name}`, `https://docs.shop.example/reasons#${name}`]) {
      for (const body of [{ type }, { errors: [{ links: { type } }] }]) {
        expect(new ApiError(400, body, () => undefined).reason).toBe(name);
      }
    }
    expect(reasons).toContain(`<a id="${name}"></a>`);
  }
});

test.each(['its own origin', '*'])(
  'a page reads the fields of a 201 and of a refusal; cors.origins: %s',
  async (named) => {
    const other = http.createServer((_incoming, response) => {
      response.writeHead(201, {
        Location: '/carts/9',
        ETag: '"shop"',
        'Access-Control-Expose-Headers': 'X-Total',
        'X-Total': '17',
        'X-Hidden': '1',
      });
      response.end('{}');
    });
    const { url, close } = await listen(other);
    const guarded = await startShopwardHere({
      upstream: url,
      rows: ['GET /secret'],
      config: { cors: { origins: [named === '*' ? '*' : origin] } },
    });
    const tab = await browser.newPage();
    try {
      await tab.goto(`${origin}/`);
      const read = (path: string, init: object) =>
        tab.evaluate(
          async ([url, options]) => {
            const { status, headers } = await fetch(url as string, options as RequestInit);
            return [status, Object.fromEntries(headers)];
          },
          [`${guarded.url}${path}`, init] as const,
        );
      const headers = { 'Content-Type': 'application/json', 'If-Match': '"x"', 'X-Of-The-Shop': '1' };
      const [status, fields] = await read('/things', { method: 'POST', body: '{}', headers });
      expect(status).toBe(201);
      expect(fields).toMatchObject({ location: '/carts/9', etag: '"shop"', 'x-total': '17' });
      expect(fields).toHaveProperty('x-request-id');
      expect(fields).not.toHaveProperty('x-hidden');
      const [refused, why] = await read('/secret', { headers: { Authorization: 'Bearer x' } });
      expect([refused, Object.keys(why as object)]).toEqual([
        401,
        expect.arrayContaining(['www-authenticate', 'x-request-id']),
      ]);
    } finally {
      await tab.close();
      await guarded.stop();
      await close();
    }
  },
);

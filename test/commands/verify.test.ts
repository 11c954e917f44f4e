import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type DemoShop, startDemoShop } from '../../demo/shop.ts';
import type { Check } from '../../src/commands/verify/check.ts';
import { runVerify, type VerifyOptions } from '../../src/commands/verify.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';
import { testCertificate, testKey } from '../harness/tls-fixture.ts';
import { runCommand } from './command-run.ts';

let shop: DemoShop;
let shopward: Shopward;

beforeAll(async () => {
  shop = await startDemoShop({ resolverLatencyMs: 0 });
  shopward = await startShopward({ upstream: shop.url });
});

afterAll(async () => {
  await shopward.stop();
  await shop.close();
});

interface Report {
  readonly code: number;
  readonly ok: boolean;
  readonly counts: { readonly ok: number; readonly failed: number; readonly skipped: number };
  readonly checks: readonly Check[];
}

async function verify(
  url: string,
  options: VerifyOptions = {},
  env: Record<string, string> = {},
): Promise<Report> {
  const given = { config: shopward.configFile, json: true, ...options };
  const { code, out, err } = await runCommand((io) => runVerify(url, given, io), { env });
  expect(err).toEqual([]);
  return { code, ...JSON.parse(out.join('\n')) };
}

function failures({ checks }: Report): string[] {
  return checks
    .filter(({ outcome }) => outcome === 'failed')
    .map(({ area, name, got }) => `${area}: ${name}: ${got}`);
}

function find({ checks }: Report, name: string | RegExp): Check | undefined {
  return checks.find((check) => (typeof name === 'string' ? check.name === name : name.test(check.name)));
}

/** What of the shop's log since `start` was not a plain read. */
function unsafeSince(start: number): string[] {
  return shop.received.requests
    .slice(start)
    .filter(({ method }) => method !== 'GET')
    .map(({ method, target }) => `${method} ${target}`);
}

type Relay = () => void;
interface FrontOptions {
  readonly to: string;
  readonly isTls?: boolean;
  /** Answers by itself, or lets the request pass. */
  readonly handle?: (request: IncomingMessage, response: ServerResponse, relay: Relay) => void;
  /** Changes the fields of an answer that passes. */
  readonly alter?: (fields: http.IncomingHttpHeaders, request: IncomingMessage) => void;
}

/** What stands in front of a proxy: a balancer, a TLS terminator, something that compresses. */
async function startFront({ to, isTls = false, handle, alter }: FrontOptions): Promise<string> {
  const origin = new URL(to);
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const relay: Relay = () => {
      const { method, url, headers } = request;
      const onward = http.request(
        { host: origin.hostname, port: origin.port, method, path: url, headers },
        (answer) => {
          alter?.(answer.headers, request);
          response.writeHead(answer.statusCode ?? 0, answer.headers);
          answer.pipe(response);
        },
      );
      onward.on('error', () => response.destroy());
      request.pipe(onward);
    };
    if (handle) handle(request, response, relay);
    else relay();
  };
  const server = isTls
    ? https.createServer({ cert: testCertificate, key: testKey }, listener)
    : http.createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `${isTls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('verify of a deployment that is as it should be', () => {
  it('passes every check, and changes nothing', async () => {
    const start = shop.received.requests.length;
    const report = await verify(
      shopward.url,
      { url: ['/en/canon-ixus-160-1'] },
      { SHOPWARD_TOKEN: shopward.issueToken() },
    );
    expect(failures(report)).toEqual([]);
    expect([report.code, report.ok]).toEqual([0, true]);
    expect(find(report, 'GET /carts/{cart_id}')).toEqual({
      area: 'rows',
      name: 'GET /carts/{cart_id}',
      outcome: 'ok',
      expected: '401 002',
      got: '401 002',
    });
    expect(report.checks.filter(({ area }) => area === 'rows')).toHaveLength(23);
    expect(find(report, 'GET /protected-resources')?.got).toBe('56 rows, 0 differ');
    expect(find(report, 'GET /url-resolver?url=/en/canon-ixus-160-1')?.got).toBe('abstract-products 001');
    expect(report.checks.filter(({ area }) => area === 'tags').map(({ outcome }) => outcome)).toEqual([
      'ok',
      'ok',
      'ok',
    ]);
    expect(report.checks.filter(({ outcome }) => outcome === 'skipped')).toEqual([
      expect.objectContaining({ area: 'unsafe', name: '33 rows' }),
    ]);
    expect(unsafeSince(start)).toEqual([]);
  });

  it('tries every row with --unsafe-methods, and none of it reaches the shop', async () => {
    const start = shop.received.requests.length;
    const report = await verify(shopward.url, { unsafeMethods: true, token: shopward.issueToken() });
    expect(failures(report)).toEqual([]);
    const unsafe = report.checks.filter(({ area }) => area === 'unsafe');
    expect(unsafe).toHaveLength(33 + 2 + 4);
    expect(find(report, /_method=/)?.got).toBe('400 method-override');
    expect(find(report, 'PATCH /carts/{cart_id} without If-Match')?.got).toBe('428 005');
    expect(find(report, 'DELETE /carts/{cart_id} with another If-Match')?.got).toBe('412 006');
    expect(unsafeSince(start)).toEqual([]);
  });

  it('prints a table with the counts', async () => {
    const { code, out } = await runCommand((io) =>
      runVerify(shopward.url, { config: shopward.configFile }, io),
    );
    expect(code).toBe(0);
    expect(out[0]).toMatch(/^ok {7}rows {6}GET \/customers\/\{customer_reference\} +401 002$/);
    expect(out.at(-1)).toBe(`${shopward.url}: 61 ok, 0 failed, 2 skipped`);
  });
});

describe('verify of a shop that nothing guards', () => {
  it('fails, and sends nothing that could change anything, whatever it was told', async () => {
    const start = shop.received.requests.length;
    const report = await verify(shop.url, { unsafeMethods: true, token: shopward.issueToken() });
    expect(report.code).toBe(1);
    expect(report.checks.filter(({ area, outcome }) => area === 'rows' && outcome === 'ok')).toEqual([]);
    expect(find(report, 'GET /protected-resources')?.outcome).toBe('failed');
    expect(find(report, '33 rows')).toMatchObject({
      outcome: 'skipped',
      advice: expect.stringContaining('would reach the shop'),
    });
    expect(find(report, 'other spellings')?.outcome).toBe('skipped');
    expect(unsafeSince(start)).toEqual([]);
  });

  it('stops at the first unsafe request that was not refused', async () => {
    const start = shop.received.requests.length;
    const front = await startFront({
      to: shop.url,
      handle(request, response, relay) {
        if (request.method !== 'GET') return relay();
        response.writeHead(401, { 'WWW-Authenticate': 'Bearer realm="x"' });
        response.end('{"errors":[{"status":401,"code":"002","detail":"Missing access token."}]}');
      },
    });
    const report = await verify(front, { unsafeMethods: true });
    const sent = unsafeSince(start);
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatch(/^PATCH \/customers\/shopward-verify-[0-9a-f]{12}\/addresses\/shopward-verify-/);
    const unsafe = report.checks.filter(({ area }) => area === 'unsafe');
    expect(unsafe.map(({ outcome }) => outcome)).toEqual(['failed', ...Array(32 + 2).fill('skipped')]);
  });

  it('never sends a DELETE without an id', async () => {
    const list = path.join(shopward.folder, 'delete.yaml');
    await writeFile(list, 'groups:\n  A:\n    - GET /carts\n    - DELETE /carts\ncomplete: true\n');
    const methods = new Set<string>();
    const front = await startFront({
      to: shopward.url,
      handle(request, _response, relay) {
        methods.add(request.method ?? '');
        relay();
      },
    });
    const report = await verify(front, { unsafeMethods: true, list });
    expect(find(report, 'DELETE /carts')).toMatchObject({ outcome: 'skipped' });
    expect([...methods]).toEqual(['GET']);
  });
});

describe('verify finds what is wrong', () => {
  it('another list', async () => {
    const other = await startShopward({
      upstream: shop.url,
      rows: ['GET /carts', { match: 'GET /orders', scopes: ['buyer'] }, 'GET /mine'],
    });
    try {
      const list = path.join(shopward.folder, 'other.yaml');
      await writeFile(
        list,
        'groups:\n  A:\n    - GET /carts\n    - GET /orders\n    - GET /wishlists\ncomplete: true\n',
      );
      const report = await verify(other.url, { list });
      expect(find(report, 'GET /wishlists')).toMatchObject({ outcome: 'failed', got: '200' });
      expect(find(report, 'GET /protected-resources')).toMatchObject({
        outcome: 'failed',
        got: '3 rows, 3 differ',
        advice: 'not there: GET /wishlists; only there: GET /mine; other scopes: GET /orders',
      });
    } finally {
      await other.stop();
    }
  });

  it.each([
    ['a weak tag', (tag: string) => `W/${tag}`],
    ['a marked tag', (tag: string) => tag.replace(/"$/, '-gzip"')],
    ['no tag', () => undefined],
  ])('%s behind compression in front', async (what, change) => {
    const front = await startFront({
      to: shopward.url,
      alter(fields, request) {
        if (!request.headers['accept-encoding']?.includes('gzip') || fields.etag === undefined) return;
        const altered = change(fields.etag);
        if (altered === undefined) delete fields.etag;
        else fields.etag = altered;
      },
    });
    const token = shopward.issueToken();
    const check = find(await verify(front, { token }), /gzip$/);
    expect(check?.outcome).toBe('failed');
    expect(check?.advice).toContain(
      what === 'no tag' ? 'drops ETag' : 'ifMatch: lenient for /carts/{cart_id}',
    );
  });

  it('no weak tag, where the list of tracked resources takes them', async () => {
    const config = {
      entityTags: { resources: [{ collection: '/carts', member: '/carts/{cart_id}', ifMatch: 'lenient' }] },
    };
    const lenient = await startShopward({ upstream: shop.url, config });
    try {
      const front = await startFront({
        to: lenient.url,
        alter(fields, request) {
          if (request.headers['accept-encoding'] === 'gzip' && fields.etag) fields.etag = `W/${fields.etag}`;
        },
      });
      const report = await verify(front, { token: lenient.issueToken(), config: lenient.configFile });
      expect(failures(report)).toEqual([]);
      expect(find(report, /gzip$/)?.got).toMatch(/^W\/"/);
    } finally {
      await lenient.stop();
    }
  });

  it('a token that is not taken', async () => {
    const token = shopward.issueToken({ exp: Math.floor(Date.now() / 1000) - 60 });
    const check = find(await verify(shopward.url, { token }), /with the given token$/);
    expect(check).toMatchObject({ outcome: 'failed', got: '401 001' });
    expect(JSON.stringify(check)).not.toContain(token.slice(0, 20));
  });

  it('a shop that is away', async () => {
    const lonely = await startShopward({ upstream: 'http://127.0.0.1:9' });
    try {
      const report = await verify(lonely.url, { config: lonely.configFile });
      expect(failures(report)).toEqual([
        'open: GET /ID: 502 upstream-unreachable',
        'resolver: GET /url-resolver?url=/en/ID: 502 upstream-unreachable',
      ]);
    } finally {
      await lonely.stop();
    }
  });

  it('an open route that needs a token there, and one that the list protects', async () => {
    const report = await verify(shopward.url, { open: ['/stores', '/carts'] });
    expect(find(report, 'GET /stores')).toMatchObject({ area: 'open', outcome: 'ok', got: '200' });
    expect(report.checks.find(({ area, name }) => area === 'open' && name === 'GET /carts')?.outcome).toBe(
      'skipped',
    );
    const front = await startFront({
      to: shopward.url,
      handle(request, response, relay) {
        if (request.url !== '/stores') return relay();
        response.writeHead(401, { 'WWW-Authenticate': 'Bearer' });
        response.end('{"errors":[{"status":401,"code":"002"}]}');
      },
    });
    expect(failures(await verify(front, { open: ['/stores'] }))).toEqual(['open: GET /stores: 401 002']);
  });

  it('a refusal without a challenge', async () => {
    const front = await startFront({
      to: shopward.url,
      alter: (fields) => delete fields['www-authenticate'],
    });
    expect(find(await verify(front), 'GET /carts')).toMatchObject({
      outcome: 'failed',
      got: 'no WWW-Authenticate',
    });
  });
});

describe('verify leaves alone', () => {
  it('rows in observe mode: they would reach the shop', async () => {
    const observing = await startShopward({
      upstream: shop.url,
      rows: [
        'GET /orders',
        { match: 'PATCH /carts/{id}', observe: true },
        { match: 'GET /carts', observe: true },
      ],
    });
    try {
      const start = shop.received.requests.length;
      const report = await verify(observing.url, { config: observing.configFile, unsafeMethods: true });
      expect(failures(report)).toEqual([]);
      expect(find(report, 'GET /carts')).toMatchObject({ outcome: 'skipped' });
      expect(find(report, 'PATCH /carts/{id}')).toMatchObject({ outcome: 'skipped' });
      expect(unsafeSince(start)).toEqual([]);
    } finally {
      await observing.stop();
    }
  });

  it('redirects: it says so, and follows none', async () => {
    const asked: string[] = [];
    const front = await startFront({
      to: shopward.url,
      handle(request, response, relay) {
        asked.push(request.url ?? '');
        if (!request.url?.startsWith('/CARTS')) return relay();
        response.writeHead(308, { Location: '/followed' });
        response.end();
      },
    });
    const report = await verify(front);
    expect(find(report, 'GET /CARTS')).toMatchObject({
      outcome: 'skipped',
      advice: expect.stringMatching(/^308:/),
    });
    expect(asked).not.toContain('/followed');
  });
});

describe('verify over TLS', () => {
  it('reports a certificate that clients refuse, and keeps the token', async () => {
    const credentials = new Set<string | undefined>();
    const front = await startFront({
      to: shopward.url,
      isTls: true,
      handle(request, _response, relay) {
        credentials.add(request.headers.authorization);
        relay();
      },
    });
    const report = await verify(front, { token: shopward.issueToken() });
    expect(failures(report)).toEqual([
      expect.stringMatching(/^tls: 127\.0\.0\.1:\d+: TLSv1\.3, .*, DEPTH_ZERO_SELF_SIGNED_CERT$/),
    ]);
    expect([...credentials]).toEqual([undefined, 'Bearer shopward.verify.invalid']);
  });

  it('takes an authority of its own', async () => {
    const front = await startFront({ to: shopward.url, isTls: true });
    const ca = path.join(shopward.folder, 'ca.pem');
    await writeFile(ca, testCertificate);
    const report = await verify(front, { token: shopward.issueToken(), ca });
    expect(failures(report)).toEqual([]);
    expect(report.checks[0]).toMatchObject({
      area: 'tls',
      outcome: 'ok',
      got: 'TLSv1.3, valid until 2126-10-28',
    });
    expect(find(report, /with the given token$/)?.outcome).toBe('ok');
  });

  it('plain HTTP where TLS is spoken, and the other way round', async () => {
    const front = await startFront({ to: shopward.url, isTls: true });
    expect((await verify(front.replace('https', 'http'))).code).toBe(1);
    expect((await verify(shopward.url.replace('http', 'https'))).code).toBe(1);
  });
});

describe('verify is bounded', () => {
  it('says once that nobody answers', async () => {
    const report = await verify('http://127.0.0.1:9');
    expect([report.code, failures(report)]).toEqual([1, ['reach: GET /ID: connection refused']]);
  });

  it('waits for no answer for ever', async () => {
    const front = await startFront({ to: shopward.url, handle: () => {} });
    expect(failures(await verify(front, { timeout: '0.2' }))).toEqual(['reach: GET /ID: no answer in time']);
  });

  it('ends when the time of the whole run is over', async () => {
    let asked = 0;
    const front = await startFront({
      to: shopward.url,
      handle(_request, _response, relay) {
        asked += 1;
        if (asked < 5) relay();
      },
    });
    const report = await verify(front, { deadline: '1', timeout: '30' });
    expect(report.code).toBe(1);
    expect(failures(report).at(-1)).toMatch(/no time left$/);
  });

  it.each([1, 3])('asks at most %i at once', async (concurrency) => {
    let inFlight = 0;
    let most = 0;
    const front = await startFront({
      to: shopward.url,
      handle(_request, response, relay) {
        inFlight += 1;
        most = Math.max(most, inFlight);
        response.once('finish', () => {
          inFlight -= 1;
        });
        setImmediate(relay);
      },
    });
    const report = await verify(front, { concurrency: String(concurrency) });
    expect([report.code, most]).toEqual([0, concurrency]);
  });

  it('finds a deployment below a path', async () => {
    const front = await startFront({
      to: shopward.url,
      handle(request, _response, relay) {
        request.url = request.url?.replace(/^\/api(?=\/)/, '') ?? '';
        relay();
      },
    });
    expect(failures(await verify(`${front}/api/`))).toEqual([]);
  });

  it.each([
    ['shop.example', {}],
    ['ftp://shop.example', {}],
    ['http://shop.example/?a=1', {}],
    ['http://user@shop.example/', {}],
    ['http://127.0.0.1:1', { timeout: '0' }],
    ['http://127.0.0.1:1', { timeout: 'soon' }],
    ['http://127.0.0.1:1', { deadline: '-1' }],
    ['http://127.0.0.1:1', { concurrency: '65' }],
    ['http://127.0.0.1:1', { concurrency: '1.5' }],
    ['https://127.0.0.1:1', { ca: 'gone.pem' }],
  ])('bad usage: %s %j', async (url, options) => {
    const { code, out, err } = await runCommand((io) =>
      runVerify(url, { config: shopward.configFile, ...options }, io),
    );
    expect({ code, out }).toEqual({ code: 2, out: [''] });
    expect(err).toHaveLength(1);
  });

  it('bad configuration', async () => {
    const { code } = await runCommand((io) => runVerify('http://127.0.0.1:1', { config: 'gone.yaml' }, io));
    expect(code).toBe(78);
  });
});

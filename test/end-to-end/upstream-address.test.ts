import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** Fields of the shop's next answers. */
let told = '';
let upstream: RecordingUpstream;
const running: RunningShopward[] = [];

beforeAll(async () => {
  upstream = await startRecordingUpstream(
    ({ head }) =>
      head.startsWith('GET /api/v2/url-resolver')
        ? answer(
            '{"data":[{"type":"url-resolver","id":null,"attributes":{"entityType":"cms-pages","entityId":"7"}}]}',
            'Content-Type: application/vnd.api+json\r\n',
          )
        : answer(
            '{"data":{"type":"carts","id":"1"}}',
            `Content-Type: application/json\r\n${told}`,
            told === '' ? '200 OK' : '201 Created',
          ),
    { answersWhole: true },
  );
});
afterEach(() => {
  told = '';
});
afterAll(async () => {
  for (const one of running.splice(0)) await one.stop();
  await upstream?.close();
});

async function start(path: string, config: object = {}): Promise<RunningShopward> {
  const one = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}${path}`,
    rows: ['GET /orders', 'ANY /carts/**'],
    config,
  });
  running.push(one);
  return one;
}

async function send({ port }: RunningShopward, line: string, fields: readonly string[] = [], body = '') {
  const length = body === '' ? [] : [`Content-Length: ${body.length}`, 'Content-Type: application/json'];
  const lines = [`${line} HTTP/1.1`, 'Host: api.shop.example', 'Connection: close', ...length, ...fields];
  return exchangeRaw(port, [...lines, '', body].join('\r\n'));
}

const lastLine = () => upstream.requestLines.at(-1);

describe('a path in upstream.url', () => {
  let shopward: RunningShopward;
  beforeAll(async () => {
    shopward = await start('/api/v2/', { upstream: { webSocket: true } });
  });

  it.each([
    ['GET /products', 'GET /api/v2/products HTTP/1.1'],
    ['GET /', 'GET /api/v2/ HTTP/1.1'],
    ['GET /?', 'GET /api/v2/? HTTP/1.1'],
    ['GET //products?a=/../b', 'GET /api/v2/products?a=/../b HTTP/1.1'],
    ['GET /a//b/', 'GET /api/v2/a//b/ HTTP/1.1'],
    ['GET /%7e;x', 'GET /api/v2/~;x HTTP/1.1'],
    ['GET http://api.shop.example/products', 'GET /api/v2/products HTTP/1.1'],
    ['OPTIONS /products', 'OPTIONS /api/v2/products HTTP/1.1'],
    // The path is prepended even if the public path begins with it.
    ['GET /api/v2/products', 'GET /api/v2/api/v2/products HTTP/1.1'],
  ])('%s is sent as %s', async (line, seen) => {
    expect((await send(shopward, line)).status).toBe(200);
    expect(lastLine()).toBe(seen);
  });

  it.each([
    'OPTIONS *',
    'GET /../admin',
    'GET /..',
    'GET /x/../../admin',
    'GET /%2e%2e/admin',
    'GET /..;/admin',
    'GET /..%2fadmin',
    'GET /%252e%252e/admin',
    'GET \\..\\admin',
    'GET /\\..\\admin',
    'GET ../admin',
    'GET @evil.example/',
    'GET .evil.example/',
  ])('400 for a target that would leave it: %s', async (line) => {
    const before = upstream.requestLines.length;
    expect((await send(shopward, line)).status).toBe(400);
    expect(upstream.requestLines.length).toBe(before);
  });

  it('is prepended after the decision: list and tags use the public path', async () => {
    expect((await send(shopward, 'GET /orders')).status).toBe(401);
    expect((await send(shopward, 'GET /api/v2/orders')).status).toBe(401);
    const token = `Authorization: Bearer ${shopward.issueToken()}`;
    const read = await send(shopward, 'GET /carts/1', [token]);
    const etag = read.field('etag');
    expect([read.status, etag, lastLine()]).toEqual([
      200,
      expect.stringMatching(/^"/),
      'GET /api/v2/carts/1 HTTP/1.1',
    ]);
    expect((await send(shopward, 'PATCH /carts/1', [token, 'If-Match: "old"'], '{}')).status).toBe(412);
    expect((await send(shopward, 'PATCH /carts/1', [token, `If-Match: ${etag}`], '{}')).status).toBe(200);
    expect(lastLine()).toBe('PATCH /api/v2/carts/1 HTTP/1.1');
    // The shop names the member by its own path, which is the same member.
    told = 'Location: /api/v2/carts/1\r\n';
    const added = await send(shopward, 'POST /carts/1/items', [token], '{}');
    expect([added.status, added.field('location'), added.field('etag')]).toEqual([
      201,
      '/carts/1',
      expect.stringMatching(/^"/),
    ]);
  });

  it('is prepended for resolver requests and WebSockets', async () => {
    expect((await send(shopward, 'GET /url-resolver?url=/en/a')).status).toBe(200);
    expect(lastLine()).toBe('GET /api/v2/url-resolver?url=%2Fen%2Fa HTTP/1.1');
    told = `Location: http://127.0.0.1:${upstream.port}/api/v2/login\r\n`;
    const handshake = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
    const declined = await exchangeRaw(
      shopward.port,
      `GET /events? HTTP/1.1\r\nHost: s\r\n${handshake}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    expect(lastLine()).toBe('GET /api/v2/events? HTTP/1.1');
    expect([declined.status, declined.field('location')]).toEqual([201, '/login']);
  });
});

describe('Location and Content-Location', () => {
  it('name the public address if the shop names its own', async () => {
    const own = `127.0.0.1:${upstream.port}`;
    const relative = await start('');
    const absolute = await start('', { publicUrl: 'https://api.shop.example' });
    const asSent = await start('', { upstream: { rewriteLocation: false } });
    told = `Location: http://u:p@${own}/orders/1\r\ncontent-location: //${own}//evil.example\r\n`;
    const fieldsOf = async (one: RunningShopward) => {
      const response = await send(one, 'POST /anything', [], '{}');
      return [response.field('location'), response.field('content-location')];
    };
    expect(await fieldsOf(relative)).toEqual(['/orders/1', '/evil.example']);
    expect(await fieldsOf(absolute)).toEqual([
      'https://api.shop.example/orders/1',
      'https://api.shop.example/evil.example',
    ]);
    expect(await fieldsOf(asSent)).toEqual([`http://u:p@${own}/orders/1`, `//${own}//evil.example`]);
    // Fields of the client do not change the address.
    const lines = ['POST /x HTTP/1.1', 'Host: evil.example', 'X-Forwarded-Host: evil.example'];
    const asked = await exchangeRaw(
      relative.port,
      [...lines, 'Content-Length: 0', 'Connection: close', '', ''].join('\r\n'),
    );
    expect(asked.field('location')).toBe('/orders/1');
    // A line end ends the value; the rest is another field.
    told = `Location: http://${own}/a\r\nSet-Cookie: a=b\r\n`;
    expect((await send(relative, 'POST /x', [], '{}')).field('location')).toBe('/a');
  });
});

import http from 'node:http';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listen } from '../harness/listen.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

/** Tokens outside `Authorization`, over real sockets; WebSockets between Node's client and a server of `ws`. */
interface WebSocketServer {
  on(event: 'connection', listener: (socket: { send(text: string): void }) => void): void;
  close(): void;
}
const { WebSocketServer: Server } = createRequire(import.meta.url)('ws') as {
  WebSocketServer: new (options: object) => WebSocketServer;
};

interface Seen {
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
}
const seen: Seen[] = [];
const shared = 'public, max-age=60, s-maxage=600';
const note = ({ url = '', headers }: http.IncomingMessage) => void seen.push({ url, headers });
const shop = http.createServer((request, response) => {
  note(request);
  response.writeHead(200, {
    'Content-Type': 'application/json',
    'Cache-Control': shared,
    'CDN-Cache-Control': 'max-age=600',
    Vary: 'Accept',
  });
  response.end('{"data":{"type":"carts","id":"1"}}');
});
const sockets = new Server({
  server: shop,
  handleProtocols: (offered: Set<string>) => [...offered].find((one) => one.startsWith('chat')) ?? false,
  verifyClient: ({ req }: { req: http.IncomingMessage }) => {
    note(req);
    return true;
  },
});
sockets.on('connection', (socket) => socket.send('hello'));

let shopward: RunningShopward;
let shopOf: Awaited<ReturnType<typeof listen>>;
let token: string;
beforeAll(async () => {
  shopOf = await listen(shop);
  shopward = await startShopwardHere({
    upstream: shopOf.url,
    config: {
      upstream: { webSocket: true },
      auth: { cookieOrigins: ['https://app.example'], forward: { subject: 'X-Auth-Subject' } },
      entityTags: { resources: [{ collection: '/carts', member: '/carts/{id}' }] },
    },
    rows: [
      'GET /plain',
      { match: 'ANY /cookie', tokenIn: ['header', 'cookie:sid'] },
      { match: 'GET /carts/{id}', tokenIn: 'query:access_token' },
      { match: 'GET /query', tokenIn: 'query:access_token' },
      { match: 'GET /seen', tokenIn: ['header', 'query:access_token'], observe: true },
      { match: 'GET /events', tokenIn: ['header', 'subprotocol:bearer', 'cookie:sid'] },
    ],
  });
  token = shopward.issueToken({ sub: 'DE--21' });
});
beforeEach(() => void seen.splice(0));
afterAll(async () => {
  await shopward.stop();
  sockets.close();
  await shopOf.close();
  // The output contains no token.
  expect(shopward.output()).not.toContain('eyJ');
});

function send(line: string, ...fields: readonly string[]): Promise<RawResponse> {
  const lines = [`${line} HTTP/1.1`, 'Host: shop.example', 'Connection: close', ...fields, '', ''];
  return exchangeRaw(shopward.port, lines.join('\r\n'));
}
const codeOf = ({ status, body }: RawResponse) =>
  status < 400 ? String(status) : `${status} ${JSON.parse(body.toString()).errors[0].code}`;

describe('a cookie', () => {
  it('is verified, and forwarded as Authorization and identity field instead of a cookie', async () => {
    const answer = await send('GET /cookie', `Cookie: a=1; sid=${token}; b=2`);
    expect(answer.status).toBe(200);
    expect(seen[0]?.headers).toMatchObject({
      cookie: 'a=1; b=2',
      authorization: `Bearer ${token}`,
      'x-auth-subject': 'DE--21',
    });
  });

  it('makes answers that the shop calls public private, and refusals no-store', async () => {
    for (const fields of [[`Cookie: sid=${token}`], [`Authorization: Bearer ${token}`], []]) {
      const answer = await send('GET /cookie', ...fields);
      const isRefused = fields.length === 0;
      expect(answer.status).toBe(isRefused ? 401 : 200);
      expect(answer.field('cache-control')).toBe(isRefused ? 'no-store' : 'private, max-age=60');
      if (!isRefused) expect(answer.fields('vary').join(',')).toContain('Cookie');
      expect(answer.field('cdn-cache-control')).toBe(undefined);
    }
    const plain = await send('GET /plain', `Authorization: Bearer ${token}`);
    expect([plain.field('cache-control'), plain.field('vary')]).toEqual(['private, max-age=60', 'Accept']);
  });

  it('403 for a POST by cookie without an allowed origin', async () => {
    const cookie = `Cookie: sid=${token}`;
    const post = (...fields: string[]) => send('POST /cookie', 'Content-Length: 0', cookie, ...fields);
    expect(codeOf(await post())).toBe('403 cross-site-request');
    expect(codeOf(await post('Origin: https://evil.example'))).toBe('403 cross-site-request');
    expect(seen).toEqual([]);
    expect(codeOf(await post('Origin: http://shop.example', 'Sec-Fetch-Site: same-origin'))).toBe('200');
    expect(codeOf(await post('Origin: https://app.example', 'Sec-Fetch-Site: cross-site'))).toBe('200');
    const bearer = `Authorization: Bearer ${token}`;
    expect(codeOf(await send('POST /cookie', 'Content-Length: 0', bearer))).toBe('200');
  });

  it('400 for a cookie beside Authorization, and the shop is not asked', async () => {
    const both = await send('GET /cookie', `Cookie: sid=${token}`, `Authorization: Bearer ${token}`);
    expect(codeOf(both)).toBe('400 access-token-repeated');
    expect(both.field('www-authenticate')).toContain('error="invalid_request"');
    expect(seen).toEqual([]);
  });

  it('is ignored for a row without it in tokenIn', async () => {
    expect(codeOf(await send('GET /plain', `Cookie: sid=${token}`))).toBe('401 002');
    expect(codeOf(await send('GET /plain?access_token=x', `Authorization: Bearer ${token}`))).toBe('200');
    expect(seen[0]?.url).toBe('/plain?access_token=x');
  });
});

describe('a parameter', () => {
  it('is removed from the forwarded target, and a Referer that contains it is dropped', async () => {
    const page = `http://shop.example/query?access_token=${token}`;
    expect((await send(`GET /query?a=1&access_token=${token}&b`)).status).toBe(200);
    expect((await send('GET /open', `Referer: ${page}`)).status).toBe(200);
    expect((await send('GET /open', 'Referer: http://shop.example/x')).status).toBe(200);
    expect(seen.map(({ url, headers }) => [url, headers.referer])).toEqual([
      ['/query?a=1&b', undefined],
      ['/open', undefined],
      ['/open', 'http://shop.example/x'],
    ]);
    expect(seen[0]?.headers.authorization).toBe(`Bearer ${token}`);
  });

  it("is not part of a tag's key: another token of the same user gets 304", async () => {
    const first = await send(`GET /carts/1?access_token=${token}`);
    const tag = first.field('etag');
    expect(tag).toMatch(/^"[0-9a-f]{32}\.[0-9a-f]{24}"$/);
    const renewed = shopward.issueToken({ sub: 'DE--21', jti: 'another' });
    const second = await send(`GET /carts/1?access_token=${renewed}`, `If-None-Match: ${tag}`);
    expect(second.status).toBe(304);
  });

  it('is forwarded unchanged if it is invalid and the row is observed', async () => {
    expect((await send('GET /seen?access_token=bad', 'X-Auth-Subject: evil')).status).toBe(200);
    expect(seen[0]?.url).toBe('/seen?access_token=bad');
    expect(seen[0]?.headers['x-auth-subject']).toBe(undefined);
  });
});

describe('a subprotocol', () => {
  const open = async (protocols: string[]) => {
    const socket = new WebSocket(`ws://127.0.0.1:${shopward.port}/events`, protocols);
    const said = await new Promise<string>((resolve) => {
      socket.onmessage = ({ data }) => resolve(String(data));
      socket.onerror = () => resolve('refused');
    });
    const { protocol } = socket;
    socket.close();
    return `${said} ${protocol}`;
  };

  it('opens a WebSocket; the shop sees only the other subprotocols', async () => {
    expect(await open(['bearer', token, 'chat.v2'])).toBe('hello chat.v2');
    expect(await open(['bearer', token])).toBe('hello bearer');
    expect(seen.map(({ headers }) => headers['sec-websocket-protocol'])).toEqual(['chat.v2', undefined]);
    for (const { headers } of seen) {
      expect(headers['x-auth-subject']).toBe('DE--21');
      expect(headers.authorization).toBe(`Bearer ${token}`);
    }
  });

  it('is refused if it is invalid, missing, or beside a cookie', async () => {
    expect(await open(['bearer', 'a.b.c', 'chat'])).toBe('refused ');
    expect(await open(['chat'])).toBe('refused ');
    const shake = (...fields: string[]) => {
      const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==';
      const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', key];
      const lines = ['GET /events HTTP/1.1', 'Host: a', ...upgrade, `Cookie: sid=${token}`, ...fields];
      return exchangeRaw(shopward.port, [...lines, '', ''].join('\r\n'));
    };
    const both = await shake(`Sec-WebSocket-Protocol: bearer, ${token}`);
    expect(codeOf(both)).toBe('400 access-token-repeated');
    const byCookie = await shake('Origin: https://evil.example', 'X_Auth_Subject: evil');
    expect(codeOf(byCookie)).toBe('403 cross-site-request');
    expect(seen).toEqual([]);
  });
});

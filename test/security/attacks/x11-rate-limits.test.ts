import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { openRawConnection } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { startRedis } from '../../harness/redis-processes.ts';
import type { RunningShopward } from '../../harness/shopward.ts';
import { startShopwardHere } from '../../harness/shopward-here.ts';

/** Ways around a rate limit, and ways to abuse one. Raw sockets; a limit is two requests an hour unless a test says otherwise. */
const closing: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of closing.splice(0).reverse()) await each.close();
});

let upstream: RecordingUpstream;
const limit = (method: string, path: string, requests = 2) => ({
  ...{ method, path, requests, per: '1h', mode: 'enforce' },
});

async function serve(
  limits: readonly object[],
  config: object = {},
  rows = ['GET /mine'],
): Promise<RunningShopward> {
  upstream = await startRecordingUpstream(
    ({ head }) => answer(head.startsWith('HEAD') ? '' : '{"data":{}}'),
    { answersWhole: true },
  );
  closing.push(upstream);
  const one = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { rateLimits: { tokenEndpoints: false, rows: limits }, ...config },
    rows,
  });
  closing.push({ close: () => one.stop() });
  return one;
}

const head = (line: string, ...fields: readonly string[]) =>
  [line, 'Host: a', ...fields, '', ''].join('\r\n');
const get = (target: string, ...fields: readonly string[]) => head(`GET ${target} HTTP/1.1`, ...fields);

/** Sends each request on its own connection. */
async function statuses({ port }: RunningShopward, ...requests: readonly string[]): Promise<number[]> {
  const all: number[] = [];
  for (const request of requests) {
    const connection = await openRawConnection(port);
    await connection.write(request);
    all.push((await connection.readResponse(request.split(' ')[0])).status);
    connection.close();
  }
  return all;
}
const passed = () => upstream.requestLines.length;

describe('every request counts', () => {
  it('of ten requests in one packet two pass', async () => {
    const one = await serve([limit('GET', '/search')]);
    const connection = await openRawConnection(one.port);
    await connection.write(get('/search').repeat(10));
    const all: number[] = [];
    for (let i = 0; i < 10; i++) all.push((await connection.readResponse()).status);
    connection.close();
    expect([all, passed()]).toEqual([[200, 200, ...new Array(8).fill(429)], 2]);
  });

  const client = ['X-Forwarded-For: 192.0.2.', 'X-Real-IP: 192.0.2.', 'Forwarded: for=192.0.2.'];
  const ways: readonly (readonly [string, (path: string) => string[]])[] = [
    [
      'HTTP/1.0',
      (to) => [`GET ${to} HTTP/1.0\r\n\r\n`, head(`GET ${to} HTTP/1.0`), head(`GET ${to} HTTP/1.0`)],
    ],
    ['HEAD', (to) => [head(`HEAD ${to} HTTP/1.1`), get(to), head(`HEAD ${to} HTTP/1.1`)]],
    ['absolute form', (to) => [get(`http://a${to}`), get(to), get(`http://a${to}`)]],
    ['queries', (to) => [get(`${to}?a`), get(`${to}?b`), get(`${to}?c`)]],
    ['spellings', (to) => [get(to.toUpperCase()), get(`${to}/`), get(`/${to}`)]],
    ['more spellings', (to) => [get(to.replace('s', '%73')), get(`${to};x=1`), get(`/index.php${to}`)]],
    ['versions', (to) => [get(`/v0${to}`), get(`/1${to}`), get(`${to}.`)]],
    ['surplus segments', (to) => [get(`${to}/1`), get(`${to}/2`), get(`${to}/3`)]],
    ['a handshake', (to) => new Array(3).fill(get(to, 'Connection: Upgrade', 'Upgrade: websocket'))],
    ['client addresses in fields', (to) => client.map((field, i) => get(to, `${field}${i}`))],
  ];

  it('the third request is refused in any form', async () => {
    const pathOf = (index: number) => `/search-${index}`;
    const one = await serve(ways.map((_, i) => limit('GET', pathOf(i))));
    const told: unknown[] = [];
    for (const [i, [name, make]] of ways.entries())
      told.push([name, ...(await statuses(one, ...make(pathOf(i))))]);
    expect(told).toEqual(ways.map(([name]) => [name, 200, 200, 429]));
    expect(passed()).toBe(2 * ways.length);
  });

  it('the third WebSocket handshake is refused', async () => {
    const one = await serve([limit('GET', '/events')], { upstream: { webSocket: true } });
    const shake = get(
      '/events',
      ...['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    );
    const [a, b, c] = await statuses(one, shake, shake, shake);
    expect([a !== 429, b !== 429, c]).toEqual([true, true, 429]);
  });

  it('a chunked DELETE, a form that asks for DELETE and a DELETE with Expect count together', async () => {
    const one = await serve([limit('DELETE', '/things/{id}')]);
    const chunked = `${head('DELETE /things/1 HTTP/1.1', 'Transfer-Encoding: chunked')}1\r\na\r\n0\r\n\r\n`;
    const form = `${head('POST /things/1 HTTP/1.1', 'Content-Type: application/x-www-form-urlencoded', 'Content-Length: 14')}_method=DELETE&`;
    // Refused before its body is requested, so no 100 comes.
    const expecting = head('DELETE /things/1 HTTP/1.1', 'Content-Length: 9', 'Expect: 100-continue');
    expect(await statuses(one, chunked, form, expecting)).toEqual([200, 200, 429]);
  });

  it('SEARCH and QUERY count against the GET row of their path', async () => {
    const one = await serve([limit('GET', '/search')], { request: { methods: ['SEARCH', 'QUERY'] } });
    const search = head('SEARCH /search HTTP/1.1', 'Content-Length: 0');
    expect(
      await statuses(one, search, get('/search'), head('QUERY /search HTTP/1.1', 'Content-Length: 0')),
    ).toEqual([...[200, 200, 429]]);
  });

  it('a request counts against each row that matches it, in either order of the rows', async () => {
    for (const rows of [
      [limit('ANY', '/**', 50), limit('GET', '/search')],
      [limit('GET', '/search'), limit('ANY', '/**', 50)],
    ]) {
      const one = await serve(rows);
      expect(await statuses(one, get('/SEARCH'), get('/search'), get('/Search'), get('/other'))).toEqual([
        ...[200, 200, 429, 200],
      ]);
      const connection = await openRawConnection(one.port);
      await connection.write(get('/search'));
      const refused = await connection.readResponse();
      connection.close();
      expect(
        refused
          .field('ratelimit')
          ?.split(', ')
          .map((member) => member.split(';r=')[0])
          .toSorted(),
      ).toEqual([...['"ANY /**"', '"GET /search"']]);
    }
  });
});

describe('the limit of a token endpoint covers every request that some shop reads as a login', () => {
  const json = ['Content-Type: application/json', 'Content-Length: 2'];
  const ask = (method: string, target: string) => `${head(`${method} ${target} HTTP/1.1`, ...json)}{}`;
  const chunked = (line: string) =>
    `${head(line, 'Content-Type: application/json', 'Transfer-Encoding: chunked')}2\r\n{}\r\n0\r\n\r\n`;
  const ways = [
    ask('POST', '/access-tokens'),
    ask('PUT', '/access-tokens'),
    ask('PATCH', '/access-tokens'),
    ask('DELETE', '/access-tokens'),
    ask('GET', '/access-tokens'),
    ask('OPTIONS', '/access-tokens'),
    ask('SEARCH', '/access-tokens'),
    head('GET /access-tokens?username=a&password=b HTTP/1.1'),
    head('HEAD /access-tokens?username=a&password=b HTTP/1.1'),
    head('POST /access-tokens HTTP/1.1', 'Content-Length: 0'),
    chunked('PUT /access-tokens HTTP/1.1'),
    ask('POST', '/access-tokens?_method=PUT'),
    ask('POST', '/access-tokens/'),
    ask('POST', '/access-tokens/x'),
    ask('PATCH', '/access-tokens/x/y'),
    ask('PUT', '/access-tokens/x/y/z/1/2'),
    ask('PUT', '/carts/1/access-tokens'),
    ask('PUT', '/access-tokens.jsonapi'),
    ask('PUT', '/access-tokens/x.json'),
    ask('PUT', '/ACCESS-Tokens'),
    ask('PUT', '/access%2Dtokens/x'),
    ask('PUT', '/access-tokens;a=b/x'),
    ask('PUT', '/index.php/access-tokens/x'),
    ask('PUT', '/v1/access-tokens/x/y'),
  ];

  it.each([
    ['of the endpoints', { tokenEndpoints: { requests: 1, per: '1h', mode: 'enforce' } }],
    ['of a row that replaces it', { tokenEndpoints: {}, rows: [limit('POST', '/access-tokens', 1)] }],
  ])('429 or 400 for each request after a login, by the limit %s', async (_, rateLimits) => {
    const one = await serve([], {
      rateLimits,
      trustedProxies: ['127.0.0.1'],
      request: {
        ...{ methods: ['SEARCH'], formatSuffixes: ['json', 'jsonapi'], ignoredPrefixes: ['/index.php'] },
      },
    });
    const told: [string, number][] = [];
    for (const [i, way] of ways.entries()) {
      const of = (bytes: string) => bytes.replace('Host: a', `Host: a\r\nX-Forwarded-For: 192.0.2.${i}`);
      const [first, second] = await statuses(one, of(ask('POST', '/access-tokens')), of(way));
      told.push([`${way.slice(0, way.indexOf(' HTTP'))} after ${first}`, second as number]);
    }
    // A malformed request is answered 400.
    expect(told.filter(([, status]) => status !== 429 && status !== 400)).toEqual([]);
    const reads = [get('/access-tokens'), get('/access-tokens'), head('OPTIONS /access-tokens HTTP/1.1')];
    expect(await statuses(one, ...reads)).toEqual([200, 200, 200]);
  });
});

describe('a client spends only its own budget', () => {
  it('requests answered 400 or 401 do not count, and OPTIONS passes when the limit is used up', async () => {
    const one = await serve([limit('GET', '/search'), limit('GET', '/mine')]);
    const malformed = [
      get('/search/../search'),
      get('/search', 'Host: b'),
      get('/search', 'Content-Length: 1'),
    ];
    expect(await statuses(one, ...malformed, ...malformed)).toEqual(new Array(6).fill(400));
    const bad = get('/mine', 'Authorization: Bearer a.b.c');
    expect(await statuses(one, bad, bad, bad, get('/mine'))).toEqual(new Array(4).fill(401));
    expect(await statuses(one, get('/search'), get('/search'))).toEqual([200, 200]);
    const good = get('/mine', `Authorization: Bearer ${one.issueToken()}`);
    expect(await statuses(one, good, good, good)).toEqual([200, 200, 429]);
    expect(await statuses(one, head('OPTIONS /search HTTP/1.1'))).toEqual([200]);
  });

  it('behind a trusted proxy the client is the last address not trusted, whatever comes before it', async () => {
    const one = await serve([limit('GET', '/search')], { trustedProxies: ['127.0.0.1', '10.0.0.0/8'] });
    const via = (list: string) => get('/search', `X-Forwarded-For: ${list}`);
    expect(await statuses(one, via('1.1.1.1, 192.0.2.1'), via('2.2.2.2, 192.0.2.1, 10.0.0.1'))).toEqual([
      200, 200,
    ]);
    expect(
      await statuses(one, via('3.3.3.3,192.0.2.1'), via('::ffff:192.0.2.1'), via('192.0.2.1:999')),
    ).toEqual([...[429, 429, 429]]);
    expect(await statuses(one, via('192.0.2.2'), via('2001:db8::1'), via('[2001:db8::2]:80'))).toEqual([
      ...[200, 200, 200],
    ]);
    expect(await statuses(one, via('2001:DB8:0:0:f::1'), via('2001:db8:0:1::1'))).toEqual([429, 200]);
    // Without an address, the client is the proxy itself.
    expect(await statuses(one, via('unknown'), via('"_x"'), via(''))).toEqual([200, 200, 429]);
  });
});

describe('in the store', () => {
  it('each client and row has one key, which contains no address, path or claim, and expires', async () => {
    const redis = await startRedis({});
    closing.push(redis);
    const settings = { store: { url: redis.url }, trustedProxies: ['127.0.0.1'] };
    const one = await serve([limit('GET', '/search'), limit('GET', '/mine', 3)], settings);
    const token = one.issueToken({ sub: 'DE--planted' });
    const clients = Array.from({ length: 20 }, (_, i) => get('/search', `X-Forwarded-For: 192.0.2.${i}`));
    await statuses(one, ...clients, ...clients, get('/mine', `Authorization: Bearer ${token}`));
    const client = new Redis(redis.process?.port ?? 0);
    const keys = await client.keys('*rate*');
    const values = keys.length === 0 ? [] : await client.mget(keys);
    const left = await Promise.all(keys.map((key) => client.pttl(key)));
    client.disconnect();
    expect(keys).toHaveLength(21);
    for (const key of keys) expect(key).toMatch(/^shopward:rate:[\w-]{32}$/);
    for (const value of values) expect(value).toMatch(/^\d{16}$/);
    for (const ms of left) expect(ms > 0 && ms <= 3_600_000, String(ms)).toBe(true);
    expect(JSON.stringify([keys, values])).not.toMatch(/192\.0|planted|\/search|eyJ/);
  });

  it('requests pass while the store hangs, and count again afterwards', async () => {
    const redis = await startRedis({});
    closing.push(redis);
    const one = await serve([limit('GET', '/search')], { store: { url: redis.url, timeout: '300ms' } });
    expect(await statuses(one, get('/search'))).toEqual([200]);
    redis.process?.pause();
    expect(await statuses(one, get('/search'), get('/search'), get('/search'))).toEqual([200, 200, 200]);
    redis.process?.resume();
    await expect
      .poll(async () => (await statuses(one, get('/search')))[0], { timeout: 60_000, interval: 200 })
      .toBe(429);
  });

  it('two processes with different limits and one store each enforce their own', async () => {
    const redis = await startRedis({});
    closing.push(redis);
    const store = { store: { url: redis.url } };
    const strict = await serve([{ ...limit('GET', '/search'), per: '1d' }], store);
    const wide = await serve([{ ...limit('GET', '/search', 100), per: '1m' }], store);
    expect(await statuses(strict, get('/search'), get('/search'), get('/search'))).toEqual([200, 200, 429]);
    for (let i = 0; i < 5; i++) {
      expect(await statuses(wide, get('/search'))).toEqual([200]);
      expect(await statuses(strict, get('/search'))).toEqual([429]);
    }
  });
});

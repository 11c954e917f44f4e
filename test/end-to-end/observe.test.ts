import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { randomTag } from '../../src/entity-tags/keys.ts';
import { exchangeRaw, type RawResponse } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type RedisProcess, startRedisProcess } from '../harness/redis-server.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

type Rows = readonly (string | object)[];

const rows = ['GET /carts/{cart_id}', 'PATCH /carts/{cart_id}'];
const scoped = { match: 'GET /reports', scopes: ['analyst'] };

let redis: RedisProcess | undefined;
let upstream: RecordingUpstream;
let shopward: RunningShopward;
/** Requests that the upstream has not answered yet, and the most of them at a time. */
let busy = 0;
let busiest = 0;
let delay: Promise<void> | undefined;

async function start(config: object, list: Rows): Promise<void> {
  upstream = await startRecordingUpstream(async ({ head }) => {
    busiest = Math.max(busiest, ++busy);
    await delay;
    busy--;
    if (!head.startsWith('POST /refresh-tokens')) return answer('{"data":{"attributes":{}}}');
    const body = { data: { attributes: { accessToken: shopward.issueToken(), refreshToken: 'next' } } };
    return answer(JSON.stringify(body), 'Content-Type: application/json\r\n', '201 Created');
  });
  shopward = await startShopwardHere({ upstream: `http://127.0.0.1:${upstream.port}`, config, rows: list });
}

async function stop(): Promise<void> {
  await shopward?.stop();
  await upstream?.close();
  await redis?.close();
  redis = undefined;
}

async function send(line: string, fields: readonly string[] = [], body = ''): Promise<RawResponse> {
  const length = body === '' ? [] : [`Content-Length: ${body.length}`, 'Content-Type: application/json'];
  const head = [`${line} HTTP/1.1`, 'Host: shop.example', ...fields, ...length, '', ''].join('\r\n');
  return exchangeRaw(shopward.port, head + body, line.split(' ')[0]);
}

const bearer = (claims: object = {}) => `Authorization: Bearer ${shopward.issueToken(claims)}`;
const exchange = '{"data":{"type":"refresh-tokens","attributes":{"refreshToken":"one-and-only"}}}';

/** The access line of the request with this answer. */
function lineOf(response: RawResponse) {
  const id = response.field('x-request-id');
  return shopward.waitForLog(({ event, requestId }) => event === 'request' && requestId === id);
}

/** Refusals that observe mode does not enforce: name, request. */
const soft: [string, string, () => readonly string[], string?][] = [
  ['access-token-missing', 'GET /carts/1', () => []],
  ['access-token-invalid', 'GET /carts/1', () => ['Authorization: Bearer nonsense']],
  ['access-token-invalid', 'GET /carts/1', () => [bearer({ exp: 1 })]],
  ['insufficient-scope', 'GET /reports', () => [bearer()]],
  ['if-match-missing', 'PATCH /carts/1', () => [bearer()], '{}'],
  ['if-match-invalid', 'PATCH /carts/1', () => [bearer(), 'If-Match: "stale"'], '{}'],
  ['if-match-invalid', 'PATCH /carts/1', () => [bearer(), 'If-Match: nonsense'], '{}'],
];

/** Refusals that are always enforced: status, request. */
const hard: [number, string, () => readonly string[], string?][] = [
  [400, 'GET /carts/../x', () => []],
  [400, 'GET /carts/%2e%2e/x', () => []],
  [400, 'POST /carts/1', () => ['X-HTTP-Method-Override: PATCH']],
  [400, 'GET /carts/1', () => ['Authorization: a', 'Authorization: b']],
  [405, 'TRACE /carts/1', () => []],
  [413, 'POST /orders', () => [], 'x'.repeat(2000)],
  [501, 'POST /orders', () => ['Transfer-Encoding: gzip, chunked']],
  [431, 'GET /orders', () => [`X-Long: ${'x'.repeat(3000)}`]],
];

describe.each<[string, object, Rows]>([
  ['of the whole proxy', { mode: 'observe' }, [...rows, scoped]],
  [
    'of each row',
    {},
    [...rows.map((match) => ({ match, observe: true })), { ...scoped, observe: true }, 'GET /enforced'],
  ],
])('observe mode %s', (_, config, list) => {
  const limits = { requestBody: '1KiB', requestHeaders: '2KiB' };
  beforeAll(() => start({ ...config, limits }, list));
  afterAll(stop);

  it.each<(typeof soft)[number]>(soft)(
    '%s is logged and counted, and the request forwarded: %s',
    async (name, line, fields, body = '') => {
      const before = upstream.requestLines.length;
      const response = await send(line, fields(), body);
      expect(response.status).toBe(200);
      expect(upstream.requestLines.slice(before)).toEqual([`${line} HTTP/1.1`]);
      expect(await lineOf(response)).toMatchObject({ decision: 'forwarded', observed: name, status: 200 });
      const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
      expect(metrics).toMatch(
        new RegExp(`^shopward_rejections_total{rejection="${name}",.*enforced="false"} [1-9]`, 'm'),
      );
      expect(metrics).not.toMatch(
        new RegExp(`^shopward_rejections_total{rejection="${name}",.*"true"}`, 'm'),
      );
    },
  );

  it.each<(typeof hard)[number]>(hard)('%i is enforced: %s', async (status, line, fields, body = '') => {
    const before = upstream.requestLines.length;
    expect((await send(line, fields(), body)).status).toBe(status);
    expect(upstream.requestLines).toHaveLength(before);
  });

  it('a request that would have passed is not logged as observed', async () => {
    const response = await send('GET /carts/1', [bearer()]);
    expect(response.status).toBe(200);
    expect(await lineOf(response)).not.toHaveProperty('observed');
  });

  it('writes with a wrong tag run concurrently', async () => {
    busiest = 0;
    const released = Promise.withResolvers<void>();
    delay = released.promise;
    const before = upstream.requestLines.length;
    const writes = [1, 2, 3].map(() => send('PATCH /carts/7', [bearer(), 'If-Match: "stale"'], '{}'));
    await expect
      .poll(() => upstream.requestLines.length)
      .toBe(before + 3)
      .finally(released.resolve);
    delay = undefined;
    for (const { status } of await Promise.all(writes)) expect(status).toBe(200);
    expect(busiest).toBe(3);
  });
});

describe('observe mode', () => {
  beforeAll(async () => {
    redis = await startRedisProcess();
    const store = { url: `redis://127.0.0.1:${redis.port}`, timeout: '2s' };
    await start({ mode: 'observe', store }, rows);
  });
  afterAll(stop);

  it('is reported by a warning at start', () => {
    const line = shopward.log().find(({ event }) => event === 'observe');
    expect(line).toMatchObject({ level: 'warn' });
  });

  it('forwards a used refresh token, and logs it as observed', async () => {
    expect((await send('POST /refresh-tokens', [], exchange)).status).toBe(201);
    const again = await send('POST /refresh-tokens', [], exchange);
    expect(again.status).toBe(201);
    expect(await lineOf(again)).toMatchObject({ decision: 'forwarded', observed: 'refresh-token-invalid' });
  });

  it('forwards writes and exchanges while Redis is down, and logs them as observed', async () => {
    await redis?.kill();
    const write = await send('PATCH /carts/1', [bearer(), `If-Match: "${randomTag()}"`], '{}');
    expect(write.status).toBe(200);
    expect(await lineOf(write)).toMatchObject({ decision: 'forwarded', observed: 'tag-store-unavailable' });
    const exchanged = await send('POST /refresh-tokens', [], exchange);
    expect(exchanged.status).toBe(201);
    expect(await lineOf(exchanged)).toMatchObject({ observed: 'token-store-unavailable' });
  });
});

describe('a row in observe mode', () => {
  beforeAll(() => start({}, [{ match: 'GET /lax', observe: true }, 'GET /strict', 'PATCH /carts/{cart_id}']));
  afterAll(stop);

  it('does not change the enforcement of other rows', async () => {
    expect((await send('GET /lax')).status).toBe(200);
    expect((await send('GET /strict')).status).toBe(401);
    expect((await send('PATCH /carts/1', [bearer()], '{}')).status).toBe(428);
  });
});

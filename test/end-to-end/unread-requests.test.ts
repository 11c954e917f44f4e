import { afterAll, beforeAll, expect, it } from 'vitest';
import { exchangeRaw, openRawConnection } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let upstream: RecordingUpstream;
let shopward: RunningShopward;
beforeAll(async () => {
  upstream = await startRecordingUpstream(() => answer());
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { limits: { requestHeaders: '16KiB' } },
  });
});
afterAll(async () => {
  await shopward.stop();
  await upstream.close();
});

/** The answer, or the last of two on one connection. */
async function lastRefusal(bytes: string) {
  const connection = await openRawConnection(shopward.port);
  try {
    await connection.write(bytes);
    if (bytes.includes('GET /b')) await connection.readResponse('GET');
    return await connection.readResponse('GET');
  } finally {
    connection.close();
  }
}

/** These are refused before a request exists, and must still be logged and counted. */
it.each([
  [
    'a field of 20,000 octets',
    `GET / HTTP/1.1\r\nHost: s\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'fields-too-large',
    'header-overflow',
    { method: 'GET', path: '/' },
  ],
  [
    'a malformed field',
    'PATCH /carts/17?secret HTTP/1.1\r\nHost: s\r\nX Y: 1\r\n\r\n',
    400,
    'bad-request',
    'invalid-header-token',
    { method: 'PATCH', path: '/carts/17' },
  ],
  [
    'a malformed body',
    'POST /open HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\nGET /secret HTTP/1.1\r\n',
    400,
    'bad-request',
    'invalid-chunk-size',
    { method: 'POST', path: '/open' },
  ],
  [
    'a second request that is malformed',
    'GET /a HTTP/1.1\r\nHost: s\r\n\r\nGET /b HTTP/4.0\r\n\r\n',
    505,
    'http-version-unsupported',
    'invalid-version',
    { method: 'other', path: '' },
  ],
  [
    'nonsense',
    '\x16\x03\x01\x02 secret',
    405,
    'method-not-allowed',
    'invalid-method',
    { method: 'other', path: '' },
  ],
  [
    'a tunnel',
    'CONNECT s:443 HTTP/1.1\r\nHost: s:443\r\n\r\n',
    405,
    'method-not-allowed',
    'tunnel',
    { method: 'other', path: '' },
  ],
])('%s leaves a line in the log and a count', async (_, bytes, status, rejection, reason, head) => {
  const response = await lastRefusal(bytes);
  expect(response.status).toBe(status);
  const line = await shopward.waitForLog((one) => one.rejection === rejection && one.reason === reason);
  expect(response.fields('x-request-id')).toEqual([line.requestId]);
  expect(line).toMatchObject({ decision: 'refused', status, reason, clientAddress: '127.0.0.1', ...head });
  expect(JSON.stringify(line)).not.toMatch(/xxx|secret/);
  const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  expect(metrics).toContain(
    `shopward_rejections_total{rejection="${rejection}",reason="${reason}",enforced="true"} 1`,
  );
});

/** The log has enough of a malformed request to find it, and no part that may be a token. */
it.each([
  ['GET /stores/../carts/17?a=b', 'GET', '/stores/../carts/17'],
  ['DELETE /stores/%2fx/secret', 'DELETE', '/stores/…'],
  ['DELETE /refresh-tokens/secret/..', 'DELETE', '/refresh-tokens/…/…'],
  ['DELETE /%72efresh-tokens/secret/%00', 'DELETE', '/…'],
  ['PROPFIND /carts/1', 'other', '/carts/1'],
  ['GET http://evil.example/secret', 'GET', ''],
])('%s is logged with id, method and path', async (start, method, path) => {
  const { length } = shopward.log();
  const response = await exchangeRaw(shopward.port, `${start} HTTP/1.1\r\nHost: s\r\n\r\n`);
  expect(response.status).toBeGreaterThanOrEqual(400);
  const [id] = response.fields('x-request-id');
  expect(id).toMatch(/^[\w-]{36}$/);
  const line = await shopward.waitForLog(({ requestId }) => requestId === id);
  expect(line).toMatchObject({ method, path, decision: 'refused' });
  expect(JSON.stringify(shopward.log().slice(length))).not.toContain('secret');
});

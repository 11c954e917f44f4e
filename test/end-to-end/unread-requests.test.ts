import { afterAll, beforeAll, expect, it } from 'vitest';
import { exchangeRaw } from '../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../harness/shopward.ts';

let upstream: RecordingUpstream;
let shopward: Shopward;
beforeAll(async () => {
  upstream = await startRecordingUpstream(() => answer());
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    config: { limits: { requestHeaders: '16KiB' } },
  });
});
afterAll(async () => {
  await shopward.stop();
  await upstream.close();
});

/** Node refuses these before there is a request; whoever watches must see them all the same. */
it.each([
  [
    'too many fields',
    `GET / HTTP/1.1\r\nHost: s\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'fields-too-large',
  ],
  ['a malformed field', 'GET / HTTP/1.1\r\nHost: s\r\nX Y: 1\r\n\r\n', 400, 'bad-request'],
  ['a tunnel', 'CONNECT s:443 HTTP/1.1\r\nHost: s:443\r\n\r\n', 405, 'method-not-allowed'],
])('%s leaves a line in the log and a count', async (_, bytes, status, rejection) => {
  const response = await exchangeRaw(shopward.port, bytes);
  expect(response.status).toBe(status);
  const line = await shopward.waitForLog((one) => one.rejection === rejection);
  expect(response.fields('x-request-id')).toEqual([line.requestId]);
  expect(line).toMatchObject({ decision: 'refused', status, reason: 'unread', clientAddress: '127.0.0.1' });
  expect(JSON.stringify(line)).not.toContain('xxx');
  const metrics = await (await fetch(`${shopward.adminUrl}/metrics`)).text();
  expect(metrics).toContain(
    `shopward_rejections_total{rejection="${rejection}",reason="unread",enforced="true"} 1`,
  );
});

/** What was read, but not understood: enough to find it by, and nothing that may be a token. */
it.each([
  ['GET /stores/../carts/17?a=b', 'GET', '/stores/../carts/17'],
  ['DELETE /stores/%2fx/secret', 'DELETE', '/stores/…'],
  ['DELETE /refresh-tokens/secret/..', 'DELETE', '/refresh-tokens/…/…'],
  ['DELETE /%72efresh-tokens/secret/%00', 'DELETE', '/…'],
  ['PROPFIND /carts/1', 'other', '/carts/1'],
  ['GET http://evil.example/secret', 'GET', ''],
])('%s leaves its id, method and path', async (start, method, path) => {
  const { length } = shopward.log();
  const response = await exchangeRaw(shopward.port, `${start} HTTP/1.1\r\nHost: s\r\n\r\n`);
  expect(response.status).toBeGreaterThanOrEqual(400);
  const [id] = response.fields('x-request-id');
  expect(id).toMatch(/^[\w-]{36}$/);
  const line = await shopward.waitForLog(({ requestId }) => requestId === id);
  expect(line).toMatchObject({ method, path, decision: 'refused' });
  expect(JSON.stringify(shopward.log().slice(length))).not.toContain('secret');
});

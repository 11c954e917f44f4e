import path from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { eventually } from '../../harness/eventually.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer, type RecordingUpstream, startRecordingUpstream } from '../../harness/recording-upstream.ts';
import { type Shopward, startShopward } from '../../harness/shopward.ts';

const sdk = path.join(import.meta.dirname, '../../harness/trace-sdk.ts');
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let upstream: RecordingUpstream;
let shopward: Shopward;

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  upstream = await startRecordingUpstream(() => answer());
  shopward = await startShopward({
    upstream: `http://127.0.0.1:${upstream.port}`,
    rows: ['GET /carts/{cart_id}'],
    env,
  });
}

afterEach(async () => {
  await shopward.kill();
  await upstream.close();
});

const get = (target: string, fields: readonly string[] = []) =>
  exchangeRaw(
    shopward.port,
    [`GET ${target} HTTP/1.1`, 'Host: shop.example', ...fields, '', ''].join('\r\n'),
  );

const spans = () =>
  shopward
    .output()
    .split('\n')
    .filter((line) => line.startsWith('span '))
    .map((line) => JSON.parse(line.slice('span '.length)));

it('passes traceparent and tracestate on untouched, with and without an SDK', async () => {
  await start();
  const state = 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE';
  expect((await get('/open', [`traceparent: ${traceparent}`, `tracestate: ${state}`])).status).toBe(200);
  expect(upstream.bytes()).toContain(`traceparent: ${traceparent}\r\n`);
  expect(upstream.bytes()).toContain(`tracestate: ${state}\r\n`);
});

it('gives one server span an exchange to an SDK that was registered before', async () => {
  await start({ NODE_OPTIONS: `--import=${sdk}` });
  await get('/carts/7?token=s3cret', [`traceparent: ${traceparent}`]);
  await get('/open');
  const [refused, forwarded] = await eventually('both spans', () => {
    const all = spans();
    return all.length === 2 ? all : undefined;
  });
  expect(refused).toMatchObject({
    scope: 'shopward',
    name: 'GET /carts/{cart_id}',
    kind: 1,
    parent: 'b7ad6b7169203331',
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/carts/{cart_id}',
      'http.response.status_code': 401,
      'url.path': '/carts/7',
      'error.type': 'access-token-missing',
    },
  });
  expect(refused.endTime).toBeGreaterThanOrEqual(refused.startTime);
  expect(forwarded).toMatchObject({ name: 'GET', attributes: { 'shopward.decision': 'forwarded' } });
  expect(forwarded.parent).toBeUndefined();
  // A fault of ours or of the shop is one; neither of these is.
  expect([refused.status, forwarded.status]).toEqual([undefined, undefined]);
  expect(shopward.output()).not.toContain('s3cret');
});

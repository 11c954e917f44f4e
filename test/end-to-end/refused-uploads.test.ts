import http from 'node:http';
import { Readable } from 'node:stream';
import axios from 'axios';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RecordingUpstream, startRecordingUpstream } from '../harness/recording-upstream.ts';
import type { RunningShopward } from '../harness/shopward.ts';
import { startShopwardHere } from '../harness/shopward-here.ts';

let shop: RecordingUpstream;
let shopward: RunningShopward;

beforeAll(async () => {
  shop = await startRecordingUpstream(() => undefined);
  shopward = await startShopwardHere({
    upstream: `http://127.0.0.1:${shop.port}`,
    rows: ['POST /orders'],
    config: { limits: { routes: [{ path: '/orders', requestBody: '64MiB' }] } },
  });
});
afterAll(async () => {
  await shopward?.stop();
  await shop?.close();
});

/** Sends an upload as clients do, and gives its status. */
const clients: Readonly<Record<string, (url: string, bytes: number) => Promise<number>>> = {
  'fetch with FormData': async (url, bytes) => {
    const body = new FormData();
    body.set('file', new Blob([new Uint8Array(bytes)]), 'file');
    return (await fetch(url, { method: 'POST', body })).status;
  },
  axios: async (url, bytes) =>
    (await axios.post(url, Buffer.alloc(bytes), { validateStatus: () => true, maxBodyLength: Infinity }))
      .status,
  'http.request with a length': (url, bytes) => requestWith(url, bytes, { 'Content-Length': bytes }),
  'http.request in chunks': (url, bytes) => requestWith(url, bytes, { 'Transfer-Encoding': 'chunked' }),
};

function requestWith(url: string, bytes: number, headers: http.OutgoingHttpHeaders): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const request = http.request(url, { method: 'POST', headers }, (response) => {
    response.resume();
    resolve(response.statusCode ?? 0);
  });
  request.on('error', reject);
  Readable.from(pieces(bytes)).pipe(request);
  return promise;
}

function* pieces(bytes: number): Iterable<Buffer> {
  for (let left = bytes; left > 0; left -= 65_536) yield Buffer.alloc(Math.min(left, 65_536));
}

describe.each(Object.entries(clients))('%s learns why its upload was refused', (_, send) => {
  it.each([
    ['/orders', 401, 3_000_000],
    ['/orders', 401, 30_000_000],
    ['/stores', 413, 3_000_000],
    ['/stores', 413, 30_000_000],
  ])('POST %s: %i for %i bytes', async (path, status, bytes) => {
    const url = `http://127.0.0.1:${shopward.port}${path}`;
    for (let round = 0; round < 3; round += 1) expect(await send(url, bytes)).toBe(status);
  });
});

it('the shop was not reached by an upload that needs a token', () => {
  expect(shop.requestLines.filter((line) => line.includes('/orders'))).toEqual([]);
});

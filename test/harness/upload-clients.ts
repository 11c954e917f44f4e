import http from 'node:http';
import { Readable } from 'node:stream';
import axios from 'axios';

/** Path, status and bytes of uploads that are refused under these settings. */
export const uploads = [
  ['/orders', 401, 3_000_000],
  ['/orders', 401, 30_000_000],
  ['/stores', 413, 3_000_000],
  ['/stores', 413, 30_000_000],
] as const;
export const uploadSettings = {
  rows: ['POST /orders'],
  config: { limits: { routes: [{ path: '/orders', requestBody: '64MiB' }] } },
};

/** Sends an upload as common clients do; resolves with its status. */
export const uploadClients: Readonly<Record<string, (url: string, bytes: number) => Promise<number>>> = {
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
  Readable.from(parts(bytes)).pipe(request);
  return promise;
}

function* parts(bytes: number): Iterable<Buffer> {
  for (let left = bytes; left > 0; left -= 65_536) yield Buffer.alloc(Math.min(left, 65_536));
}

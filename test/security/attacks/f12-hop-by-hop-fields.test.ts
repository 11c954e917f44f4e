import { expect, it } from 'vitest';
import { endToEndFields } from '../../../src/upstream/response-fields.ts';
import { frontSuite } from '../../harness/forwarding-front.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';
import { answer } from '../../harness/recording-upstream.ts';

const get = 'GET / HTTP/1.1\r\nHost: s\r\n\r\n';

/** F6, F12, H14, H15, H16, H21: the fields of one connection are not forwarded to the next. */
frontSuite('F12: hop-by-hop fields', (start) => {
  it('of a response are removed, with the fields that Connection names, except ETag and Content-Type', async () => {
    const { port } = await start(() =>
      answer(
        'ok',
        'Connection: close, X-Hop , ETag,content-type\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\n' +
          'Proxy-Connection: close\r\nUpgrade: h2c\r\nTE: trailers\r\nTrailer: X-T\r\nHTTP2-Settings: x\r\nX-Debug-Token: 1\r\n' +
          'Server: nginx/1.0\r\nETag: "1"\r\nContent-Type: text/plain\r\nX-End: 1\r\n',
      ),
    );
    const response = await exchangeRaw(port, get);
    const names = response.rawFields.filter((_, i) => i % 2 === 0);
    expect(names).toEqual([
      'Content-Length',
      'ETag',
      'Content-Type',
      'X-End',
      'Date',
      'Connection',
      'Keep-Alive',
    ]);
    expect(response.field('connection')).toBe('keep-alive');
    expect(response.field('keep-alive')).not.toBe('timeout=9');
  });

  it('H16: trailers of a response are removed, and its body is complete', async () => {
    const { port } = await start(
      () =>
        'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: ETag, Set-Cookie\r\n\r\n2\r\nok\r\n0\r\nETag: "t"\r\nSet-Cookie: a=b\r\n\r\n',
    );
    const { body, complete, trailers, field } = await exchangeRaw(port, get);
    expect([body.toString(), complete, trailers, field('trailer')]).toEqual(['ok', true, [], undefined]);
  });

  it('are not sent to the shop, even if the canonical request has them', async () => {
    const { port, upstream } = await start(() => answer(), {
      edit: (request) => ({
        ...request,
        fields: [
          ...request.fields,
          ...[
            'Connection',
            'Upgrade, HTTP2-Settings',
            'Upgrade',
            'h2c',
            'HTTP2-Settings',
            'x',
            'TE',
            'trailers',
          ],
          ...['Keep-Alive', '5', 'Proxy-Connection', 'close', 'Expect', '100-continue', 'Trailer', 'X-T'],
        ],
      }),
    });
    expect((await exchangeRaw(port, get)).status).toBe(200);
    expect(upstream.bytes()).not.toMatch(/upgrade|http2|\r\nte:|\r\nkeep-alive:|proxy-|expect|trailer/i);
    expect(upstream.bytes()).not.toMatch(/connection: close/i);
  });
});

it.each([
  [['X A', '1'], []],
  [['', '1'], []],
  [['X-A', 'a\nb'], []],
  [['X-A', 'a\0'], []],
  [['X-A', '\u{100}'], []],
  [
    ['X-A', 'caf\xe9\t'],
    ['X-A', 'caf\xe9\t'],
  ],
  [
    ['Transfer-Encoding', 'chunked', 'Content-Length', '1'],
    ['Content-Length', '1'],
  ],
  [
    ['Connection', 'a', 'connection', 'B', 'A', '1', 'b', '2', 'c', '3'],
    ['c', '3'],
  ],
  [
    ['Connection', 'cache-control', 'Cache-Control', 'no-store'],
    ['Cache-Control', 'no-store'],
  ],
])('endToEndFields(%j) is %j', (fields, kept) => {
  expect(endToEndFields(fields, 200)).toEqual(kept);
});

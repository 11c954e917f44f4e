import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildRequestRules, canonicaliseRequest } from '../../../src/http/canonicalise-request.ts';
import { createPeer } from '../../../src/http/peer.ts';
import { isRejection, rejectionTable } from '../../../src/http/rejection.ts';
import { exchangeRaw } from '../../harness/raw-client.ts';

const rules = buildRequestRules({
  upstreamHost: 'upstream.internal',
  requestBodyBytes: 1000,
  generateRequestId: () => 'id',
});

/** Node's own parser in front, as the listener sets it up; answers with the refusal's name or the canonical request. */
function answer(incoming: IncomingMessage, response: ServerResponse): void {
  const peer = createPeer(incoming.socket.remoteAddress, false, rules.isTrusted);
  const result = canonicaliseRequest(incoming, peer, rules);
  response.shouldKeepAlive = false;
  response.statusCode = isRejection(result) ? rejectionTable[result.rejection].status : 200;
  response.end(JSON.stringify(result));
}

const server = http.createServer({ insecureHTTPParser: false, requireHostHeader: false }, answer);
server.on('checkContinue', answer);
server.on('checkExpectation', answer);
server.on('clientError', (_error, socket) => socket.end('HTTP/1.1 400 By The Parser\r\n\r\n'));
let port: number;

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as AddressInfo).port;
});

afterAll(() => server.close());

const crlf = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`;
const get = (target: string, ...fields: string[]) => crlf(`GET ${target} HTTP/1.1`, 'Host: shop', ...fields);
const post = (...fields: string[]) => crlf('POST /carts HTTP/1.1', 'Host: shop', ...fields);

describe('through node’s parser', () => {
  it.each([
    ['dot segments', get('/a/../orders'), 'bad-request-target'],
    ['encoded dot segments', get('/a/%2e%2E;x/orders'), 'bad-request-target'],
    ['a backslash', get('/a\\..\\orders'), 'bad-request-target'],
    ['asterisk-form', get('*'), 'bad-request-target'],
    ['asterisk-form of OPTIONS', crlf('OPTIONS * HTTP/1.1', 'Host: shop'), 'bad-request-target'],
    ['8 KiB of path', get(`/${'a'.repeat(9000)}`), 'target-too-long'],
    ['HTTP/0.9', 'GET /orders\r\n\r\n', 'bad-request'],
    ['HTTP/2.0', crlf('GET / HTTP/2.0', 'Host: shop'), 'http-version-unsupported'],
    ['TRACE', crlf('TRACE / HTTP/1.1', 'Host: shop'), 'method-not-allowed'],
    ['no Host', crlf('GET / HTTP/1.1'), 'bad-host'],
    ['an empty Host', crlf('GET / HTTP/1.1', 'Host:'), 'bad-host'],
    ['two Hosts', get('/', 'host: shop'), 'bad-host'],
    ['a Host with a path', crlf('GET / HTTP/1.1', 'Host: a@b/c?d#e'), 'bad-host'],
    ['two Authorizations', get('/', 'Authorization: a', 'authorization: b'), 'bad-request-fields'],
    [
      'a nominated Content-Length',
      post('Connection: content-length', 'Content-Length: 0'),
      'bad-request-fields',
    ],
    ['an override field', post('X-HTTP-Method-Override: DELETE'), 'method-override'],
    [
      'gzip, chunked',
      `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n`,
      'transfer-encoding-unsupported',
    ],
    [
      'chunked HTTP/1.0',
      `${crlf('POST / HTTP/1.0', 'Host: shop', 'Transfer-Encoding: chunked')}0\r\n\r\n`,
      'bad-request-fields',
    ],
    ['a large body', post('Content-Length: 1001'), 'payload-too-large'],
    ['another expectation', post('Expect: x', 'Content-Length: 1'), 'expectation-failed'],
    ['a mixed expectation', post('Expect: 100-continue, x', 'Content-Length: 1'), 'expectation-failed'],
  ] as const)('refuses %s', async (_name, bytes, rejection) => {
    const response = await exchangeRaw(port, bytes);
    expect(JSON.parse(response.body.toString())).toMatchObject({ rejection });
    expect(response.status).toBe(rejectionTable[rejection].status);
  });

  it.each([
    ['a raw octet over 0x7f', get('/caf\xe9')],
    ['two Content-Lengths', post('Content-Length: 1', 'Content-Length: 1')],
    ['Content-Length and Transfer-Encoding', post('Content-Length: 1', 'Transfer-Encoding: chunked')],
    ['obs-fold', get('/', 'A: b', ' c')],
    ['a space before the colon', post('Transfer-Encoding : chunked')],
    ['a bare LF', 'GET / HTTP/1.1\nHost: shop\n\n'],
    ['NUL in a value', get('/', 'A: b\0c')],
    ['a lower-case method', crlf('get / HTTP/1.1', 'Host: shop')],
  ])('leaves %s to the parser, which refuses it', async (_name, bytes) => {
    expect(await exchangeRaw(port, bytes)).toMatchObject({ status: 400, reason: 'By The Parser' });
  });

  it('an expectation is read and answered with the decision, not with 100', async () => {
    const response = await exchangeRaw(port, post('Expect: 100-continue', 'Content-Length: 5'));
    expect(response.status).toBe(200);
    const request = JSON.parse(response.body.toString());
    expect(request).toMatchObject({ expectsContinue: true, body: { length: 5 } });
  });

  it('takes the octets of path, query and fields as they came', async () => {
    const bytes = get(
      '//o%72ders/caf%c3%a9//;x?q=%E9&b=\\"',
      'X-Name: caf\xe9\t1 ',
      'X_Name: 1',
      'Store: DE',
    );
    const request = JSON.parse((await exchangeRaw(port, bytes)).body.toString());
    expect(request).toMatchObject({
      path: '/orders/caf%C3%A9//;x',
      query: '?q=%E9&b=\\"',
      segments: ['orders', 'caf%C3%A9', '', ';x'],
      clientAddress: '127.0.0.1',
    });
    expect(request.fields.slice(0, 6)).toEqual([
      'Host',
      'upstream.internal',
      'X-Name',
      'caf\xe9\t1',
      'Store',
      'DE',
    ]);
  });
});

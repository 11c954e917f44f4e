import { expect, it } from 'vitest';
import { expectRejection, useAttackStage } from '../../harness/attack-stage.ts';

const stage = useAttackStage();
const host = 'Host: shop.example\r\n\r\n';

/** P18: Node accepts HTTP/0.9. */
it.each([
  ['GET /orders\r\n\r\n', 400, 'bad-request'],
  ['GET /stores\r\n\r\n', 400, 'bad-request'],
  [`GET /stores HTTP/0.9\r\n${host}`, 400, 'bad-request'],
  [`GET /stores HTTP/1.2\r\n${host}`, 505, 'http-version-unsupported'],
  [`GET /stores HTTP/1.9\r\n${host}`, 505, 'http-version-unsupported'],
  [`GET /stores HTTP/2.0\r\n${host}`, 505, 'http-version-unsupported'],
  [`GET /stores HTTP/3.0\r\n${host}`, 505, 'http-version-unsupported'],
  ['GET /stores HTTP/1.1\r\n\r\n', 400, 'bad-host'],
  ['GET /orders HTTP/1.0\r\n\r\n', 401, '002'],
  [`GET /orders/../x HTTP/1.0\r\n\r\n`, 400, 'bad-request-target'],
  [`GET /orders HTTP/1.0\r\n${host}`, 401, '002'],
] as const)('P18: %j: %i %s', async (bytes, status, code) => {
  await stage.refuses(bytes, status, code);
});

it.each([
  [`GET /stores http/1.1\r\n${host}`, 400, 'bad-request'],
  [`GET /stores HTTP/1\r\n${host}`, 505, 'http-version-unsupported'],
  [`GET /stores HTTP/11\r\n${host}`, 505, 'http-version-unsupported'],
  [`GET /stores HTTP/1.1x\r\n${host}`, 505, 'http-version-unsupported'],
  [`GET /stores XTTP/1.1\r\n${host}`, 400, 'bad-request'],
  [`GET /stores  HTTP/1.1 x\r\n${host}`, 505, 'http-version-unsupported'],
  ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'bad-request'],
  ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 405, 'method-not-allowed'],
  ['\r\n\r\n\r\n \r\n\r\n', 405, 'method-not-allowed'],
  [`${'\0'.repeat(64)}\r\n\r\n`, 405, 'method-not-allowed'],
] as const)('P18: %j: %i %s, and the connection ends', async (bytes, status, code) => {
  const before = stage.upstream.bytes();
  const connection = await stage.send(bytes);
  const response = await connection.readResponse();
  connection.close();
  expectRejection(response, status, code);
  expect(response.field('connection')).toBe('close');
  expect(stage.upstream.bytes()).toBe(before);
});

it('P18: HTTP/1.0 without Host is forwarded as 1.1, with the Host of the upstream', async () => {
  const { requestLine, fields } = await stage.passes('GET /stores HTTP/1.0\r\n\r\n');
  expect(requestLine).toBe('GET /stores HTTP/1.1');
  expect(fields('host')).toEqual([`127.0.0.1:${stage.upstream.port}`]);
});
